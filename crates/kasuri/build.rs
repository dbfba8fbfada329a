//! Gives the program a hash of its sources, which distinguishes builds of one version on the machines of a sweep, and their commit.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// FNV-1a, 64 bits: the parameters of draft-eastlake-fnv.
const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

fn main() -> io::Result<()> {
    let own = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let crates = own.parent().unwrap_or(&own).to_owned();
    let mut files = Vec::new();
    for folder in fs::read_dir(&crates)? {
        let folder = folder?.path();
        println!("cargo::rerun-if-changed={}", folder.join("src").display());
        list(&folder.join("src"), &mut files)?;
    }
    let lock = crates.with_file_name("Cargo.lock");
    if lock.is_file() {
        println!("cargo::rerun-if-changed={}", lock.display());
        files.push(lock);
    }
    let root = crates.parent().unwrap_or(&crates).to_owned();
    files.sort();
    let mut sum = OFFSET;
    for file in &files {
        let name = file.strip_prefix(&root).unwrap_or(file).to_string_lossy().replace('\\', "/");
        for byte in name.bytes().chain(fs::read(file)?) {
            sum = (sum ^ u64::from(byte)).wrapping_mul(PRIME);
        }
    }
    println!("cargo::rustc-env=KASURI_BUILD={sum:016x}");
    let commit = commit(&own).unwrap_or_default();
    let words = if commit.is_empty() { "of no known commit".to_owned() } else { format!("commit {commit}") };
    println!("cargo::rustc-env=KASURI_COMMIT={commit}");
    println!("cargo::rustc-env=KASURI_COMMIT_WORDS={words}");
    link_at_a_fixed_address();
    Ok(())
}

/// Digits of a commit.
const COMMIT_DIGITS: usize = 12;

/// The commit of the sources, with `-dirty` if they were changed: from git in a checkout, from cargo's note in a packed crate, else from the
/// environment variable `KASURI_COMMIT`; `None` if all are missing.
fn commit(own: &Path) -> Option<String> {
    println!("cargo::rerun-if-env-changed=KASURI_COMMIT");
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(own).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // A checkout of something else may lie around a packed crate.
    if git(&["ls-files", "--error-unmatch", "build.rs"]).is_some() {
        let head = git(&["symbolic-ref", "--quiet", "HEAD"]);
        for name in ["HEAD", "packed-refs"].into_iter().chain(head.as_deref()) {
            let path = own.join(git(&["rev-parse", "--git-path", name])?);
            if path.is_file() {
                println!("cargo::rerun-if-changed={}", path.display());
            }
        }
        let commit: String = git(&["rev-parse", "HEAD"])?.chars().take(COMMIT_DIGITS).collect();
        let is_clean = git(&["diff", "--quiet", "HEAD", "--", "..", "../../Cargo.lock"]).is_some();
        return Some(if is_clean { commit } else { format!("{commit}-dirty") });
    }
    let noted = fs::read_to_string(own.join(".cargo_vcs_info.json")).ok();
    let noted = noted.as_deref().and_then(|text| text.split("\"sha1\"").nth(1)?.split('"').nth(1).map(str::to_owned));
    let commit = noted.or_else(|| env::var("KASURI_COMMIT").ok())?;
    let plain: String = commit.chars().filter(char::is_ascii_alphanumeric).take(COMMIT_DIGITS).collect();
    (!plain.is_empty()).then_some(plain)
}

/// Links the program for one address. A position-independent one relocates 14,000 pointers whenever it starts, in 60 pages that are written for
/// nothing else: a tenth of the time of a small run. What it gives up is that its own code and tables lie at a random address.
fn link_at_a_fixed_address() {
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}

/// All files below a folder; none if there is no such folder.
fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
