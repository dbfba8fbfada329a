#!/bin/sh
# Looks for data races and lost wake-ups with Loom, Miri and ThreadSanitizer: see README.md. All three are run, whatever they find. NIGHTLY
# names another toolchain of rustup, TARGET another folder for what is compiled.
set -eu
cd "$(dirname "$0")/../.."
nightly=${NIGHTLY:-nightly}
target=${TARGET:-target}/threads
mkdir -p "$target"

fail() {
    for line; do echo "kasuri: $line" >&2; done
    exit 1
}

has_nightly() {
    cargo "+$nightly" miri --version >/dev/null 2>&1 && [ -d "$(rustc "+$nightly" --print sysroot)/lib/rustlib/src/rust/library" ]
}

install_nightly() {
    command -v rustup >/dev/null 2>&1 || fail "rustup is needed to install a nightly compiler; see https://rustup.rs"
    echo "kasuri: installing the toolchain $nightly with miri and rust-src (rustup)"
    rustup toolchain install "$nightly" --profile minimal --component miri --component rust-src --no-self-update ||
        fail "rustup cannot install it here. Elsewhere, run" \
            "  rustup toolchain install $nightly --component miri --component rust-src" \
            "copy the toolchain's folder to this machine and run" \
            "  rustup toolchain link NAME FOLDER" \
            "  make verify-threads NIGHTLY=NAME"
}

# Runs a command under this name; what it writes is shown if it fails.
failed=
check() {
    name=$1
    shift
    begin=$(date +%s)
    if "$@" >"$target/log" 2>&1; then
        echo "kasuri: $name: nothing found, $(($(date +%s) - begin)) s"
        grep ' orders, ' "$target/log" || true
    else
        cat "$target/log" >&2
        echo "kasuri: $name: FAILED" >&2
        failed=yes
    fi
}

# Loom 0.7 writes to the standard error what a thread waits for, each time; what it finds is on the standard output.
loom() {
    "$target/loom/debug/kasuri-threads" 2>/dev/null
}

# Tests under Miri: with so many seeds, each another order of the threads.
miri() {
    seeds=$1
    shift
    MIRIFLAGS="-Zmiri-many-seeds=0..$seeds" cargo "+$nightly" miri test --locked --package kasuri-flit --target-dir "$target/miri" "$@"
}

# The standard library is compiled with the sanitizer, too: it would not see what its locks order, otherwise.
sanitize() {
    package=$1
    shift
    host=$(rustc "+$nightly" -vV | sed -n 's/^host: //p')
    RUSTFLAGS=-Zsanitizer=thread TSAN_OPTIONS=halt_on_error=1 \
        cargo "+$nightly" test --locked --package "$package" --target-dir "$target/tsan" -Zbuild-std --target "$host" \
        --config profile.dev.opt-level=1 --config "profile.dev.package.$package.opt-level=1" "$@"
}

has_nightly || install_nightly
check "compiling the models" cargo build --manifest-path validation/threads/Cargo.toml --target-dir "$target/loom"
check "Loom, the orders of a team's threads" loom
check "Miri, a team of threads" miri 8 --lib team::
check "Miri, a run of two threads" miri 1 --test suite tiles::two_threads
check "ThreadSanitizer, runs in tiles" sanitize kasuri-flit --test suite tiles::
check "ThreadSanitizer, flows with a scout" sanitize kasuri-flow --test suite threads::
[ -z "$failed" ]
