//! The layouts of the routers' state: one file or folder each.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
pub(crate) mod full;
pub(crate) mod plain;
