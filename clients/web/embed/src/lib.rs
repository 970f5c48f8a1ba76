//! The console and the phone page as data.
//!
//! They are what the build of `clients/web` left in `pages/dist` when this crate was built, and the crate is built again when that
//! has changed. Where nothing was left there it has no pages, and says so.
#![forbid(unsafe_code)]

/// One file of the pages.
#[derive(Debug)]
pub struct File {
    /// Where it is below the root, such as `index.html` or `assets/icon.svg`.
    pub path: &'static str,
    /// Its media type, of texts with their charset.
    pub content_type: &'static str,
    /// A weak entity tag of what is in it, quotes and all.
    pub etag: &'static str,
    /// What is in it.
    pub plain: &'static [u8],
    /// What is in it, compressed with gzip; `None` where that is not smaller.
    pub gzip: Option<&'static [u8]>,
}

/// All of them, in the order of their paths.
static FILES: &[File] = &include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Whether there are pages: the console at `index.html` and the phone page at `phone.html`.
#[must_use]
pub fn built() -> bool {
    file("index.html").is_some() && file("phone.html").is_some()
}

/// The file at a path, which is compared as it is: `..`, a slash before it and the like lead to none.
#[must_use]
pub fn file(path: &str) -> Option<&'static File> {
    FILES.get(FILES.binary_search_by(|file| file.path.cmp(path)).ok()?)
}

/// All files of the pages, in the order of their paths; none where they were not built.
#[must_use]
pub fn files() -> &'static [File] {
    FILES
}

impl File {
    /// Whether other content would have another path, so that a cache may keep the file for good.
    #[must_use]
    pub fn is_immutable(&self) -> bool {
        names_its_content(self.path)
    }
}

/// How many characters of a hash Vite puts into a name, behind a hyphen: `index-D1x_yz-A.js`.
const HASH_CHARS: usize = 8;

/// A word that happens to be as long as a hash is none: in one there is hardly ever no digit and no capital.
fn names_its_content(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    let Some((before, hash)) = stem.len().checked_sub(HASH_CHARS).and_then(|at| stem.split_at_checked(at))
    else {
        return false;
    };
    let is_base_64 = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    path.starts_with("assets/")
        && before.len() > 1
        && before.ends_with('-')
        && hash.chars().all(is_base_64)
        && hash.contains(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_a_hash_in_their_name_are_for_good() {
        for path in
            ["assets/index-D1x_yz-A.js", "assets/maplibre-gl-worker-abcdefg1.js", "assets/a-AAAAAAAA.js.map"]
        {
            assert!(names_its_content(path), "{path}");
        }
        for path in [
            "index.html",
            "index-D1x_yz-A.html",
            "assets/icon.svg",
            "assets/phone.webmanifest",
            "assets/maplibre-licences.md",
            "assets/-D1x_yz-A.js",
            "assets/D1x_yz-A.js",
            "assets/indexD1x_yz-A.js",
            "assets/a-ünïcode1.js",
            "",
        ] {
            assert!(!names_its_content(path), "{path}");
        }
    }

    #[test]
    fn every_file_is_found_and_nothing_else() {
        for file in files() {
            assert_eq!(super::file(file.path).map(|found| found.path), Some(file.path));
            assert!(!file.content_type.is_empty() && file.etag.len() == 20, "{}", file.path);
            assert!(file.gzip.is_none_or(|gzip| gzip.len() < file.plain.len()), "{}", file.path);
        }
        for path in [
            "",
            "/",
            "/index.html",
            "assets",
            "assets/",
            "assets/../index.html",
            "./index.html",
            ".gitignore",
        ] {
            assert!(file(path).is_none(), "{path}");
        }
    }
}
