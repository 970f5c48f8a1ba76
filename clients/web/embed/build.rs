//! Makes the files of `pages/dist` a table in the program, each with what HTTP says of it and compressed once and for all.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use anyhow::Context as _;
use flate2::Compression;
use flate2::read::GzEncoder;
use xxhash_rust::xxh3::xxh3_64;

fn main() -> anyhow::Result<()> {
    // The folder around them, which is always there: what cargo watches and does not find counts as changed at every build.
    println!("cargo::rerun-if-changed=pages");
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| env::var_os(name).map(PathBuf::from).with_context(|| format!("cargo sets {name}"));
    let pages = variable("CARGO_MANIFEST_DIR")?.join("pages/dist");
    let out = variable("OUT_DIR")?;
    let mut paths = Vec::new();
    list(&pages, "", &mut paths).with_context(|| format!("{}", pages.display()))?;
    // In the order in which they are searched.
    paths.sort();
    let mut table = "[\n".to_owned();
    for (idx, path) in paths.iter().enumerate() {
        let file = pages.join(path);
        table += &entry(path, &file, &out.join(format!("{idx}.gz")))
            .with_context(|| format!("{}", file.display()))?;
    }
    table.push(']');
    fs::write(out.join("files.rs"), table)?;
    Ok(())
}

/// Finds the files below a folder, which need not be there.
fn list(folder: &Path, parent: &str, paths: &mut Vec<String>) -> anyhow::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().into_string().ok().context("a name that is not UTF-8")?;
        let path = format!("{parent}{name}");
        if entry.path().is_dir() {
            list(&entry.path(), &format!("{path}/"), paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

/// A file's row, after it was compressed into another.
fn entry(path: &str, file: &Path, gzip: &Path) -> anyhow::Result<String> {
    let bytes = fs::read(file)?;
    let mut compressed = Vec::new();
    io::copy(&mut GzEncoder::new(bytes.as_slice(), Compression::best()), &mut compressed)?;
    fs::write(gzip, &compressed)?;
    let mut kind = mime_guess::from_path(path).first_or_octet_stream().to_string();
    if kind.starts_with("text/") {
        kind.push_str("; charset=utf-8");
    }
    // Weak, for plain and compressed have the same.
    let etag = format!("W/\"{:016x}\"", xxh3_64(&bytes));
    let mut row = String::new();
    writeln!(row, "File {{ path: {path:?}, content_type: {kind:?}, etag: {etag:?},")?;
    let is_smaller = compressed.len() < bytes.len();
    let gzip = if is_smaller { format!("Some(include_bytes!({gzip:?}))") } else { "None".to_owned() };
    writeln!(row, "    plain: include_bytes!({file:?}), gzip: {gzip} }},")?;
    Ok(row)
}
