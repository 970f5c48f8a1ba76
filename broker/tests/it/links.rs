//! Links between the Markdown files of the repository: each relative one leads to a file, and its anchor to a heading there.

use std::collections::{HashMap, HashSet};
use std::path::{Component, Path, PathBuf};

#[test]
fn every_relative_link_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in the workspace");
    let mut files = Vec::new();
    collect(root, &mut files);
    for name in
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "docs/protocol/README.md", "clients/README.md"]
    {
        assert!(files.contains(&root.join(name)), "{name} is not among {} files", files.len());
    }
    let pages: HashMap<_, _> = files.iter().map(|file| (file.clone(), Page::read(file))).collect();
    let mut broken = Vec::new();
    for (file, page) in &pages {
        for link in &page.links {
            if let Err(why) = check(file, link, &pages) {
                broken.push(format!("{}: {link}: {why}", file.strip_prefix(root).unwrap_or(file).display()));
            }
        }
    }
    broken.sort();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// What other pages may link to, and what a page links to.
struct Page {
    anchors: HashSet<String>,
    links: Vec<String>,
}

impl Page {
    fn read(file: &Path) -> Self {
        Self::parse(
            &std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())),
        )
    }

    fn parse(text: &str) -> Self {
        let mut page = Self { anchors: HashSet::new(), links: Vec::new() };
        let mut fence = None;
        for line in text.lines() {
            let trimmed = line.trim_start();
            let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
            match (fence, mark) {
                (None, Some(mark)) => fence = Some(mark),
                (Some(open), Some(mark)) if open == mark => fence = None,
                (Some(_), _) => {}
                (None, None) => page.read_line(line),
            }
        }
        page
    }

    fn read_line(&mut self, line: &str) {
        if let Some(heading) = heading(line) {
            let slug = slug(heading);
            let numbered = (1..).map(|number| format!("{slug}-{number}"));
            let free =
                std::iter::once(slug.clone()).chain(numbered).find(|slug| !self.anchors.contains(slug));
            self.anchors.extend(free);
        }
        let plain = without_code(line);
        for (at, _) in plain.match_indices("<a id=\"") {
            let id = &plain[at + "<a id=\"".len()..];
            self.anchors.extend(id.split('"').next().map(str::to_owned));
        }
        for (at, _) in plain.match_indices("](") {
            let target = &plain[at + 2..];
            self.links.extend(target.split([')', ' ']).next().map(str::to_owned));
        }
    }
}

/// The text of a heading.
fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6).contains(&level).then(|| text.strip_prefix(' ')).flatten()
}

/// The anchor that GitHub makes of a heading: the words of the visible text in small letters, joined by hyphens.
fn slug(heading: &str) -> String {
    let mut visible = String::new();
    let mut rest = heading.trim();
    // Of a link only its text is visible.
    while let Some((before, after)) = rest.split_once("](") {
        visible.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    visible.push_str(rest);
    let lower = visible.to_lowercase();
    let kept = lower.chars().filter(|one| one.is_alphanumeric() || [' ', '-', '_'].contains(one));
    kept.map(|one| if one == ' ' { '-' } else { one }).collect()
}

/// A line without its code spans, in which brackets are no links.
fn without_code(line: &str) -> String {
    let parts = line.split('`').enumerate();
    parts.filter(|(index, _)| index % 2 == 0).map(|(_, part)| part).collect::<Vec<_>>().join("`")
}

fn check(file: &Path, link: &str, pages: &HashMap<PathBuf, Page>) -> Result<(), &'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(());
    }
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = match path {
        "" => file.to_owned(),
        path => normal(&file.parent().expect("a file is in a folder").join(path)),
    };
    if !target.exists() {
        return Err("there is no such file");
    }
    match (anchor, pages.get(&target)) {
        (Some(anchor), Some(page)) if !page.anchors.contains(anchor) => Err("there is no such heading"),
        _ => Ok(()),
    }
}

/// A path without `.` and `..`. Links of the file system are not followed.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        if component == Component::ParentDir {
            normal.pop();
        } else if component != Component::CurDir {
            normal.push(component);
        }
    }
    normal
}

/// The Markdown files below a folder, but for what is built or installed there.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap_or_default());
        let is_folder = entry.file_type().unwrap().is_dir();
        let is_ours = !name.starts_with('.') && !["target", "node_modules"].contains(&name.as_str());
        if is_folder && is_ours {
            collect(&path, files);
        } else if !is_folder && name.ends_with(".md") {
            files.push(path);
        }
    }
}

#[test]
fn anchors_are_those_that_github_makes() {
    for (heading, anchor) in [
        ("Who may reach it", "who-may-reach-it"),
        ("The form", "the-form"),
        ("`GET /v1/clients/{client}/ws`, and more", "get-v1clientsclientws-and-more"),
        ("What [a link](there.md) says_so - twice", "what-a-link-says_so---twice"),
    ] {
        assert_eq!(slug(heading), anchor);
    }
    let page = Page::parse(
        "# A\n## A\n```sh\n# B\n[x](y.md)\n```\n<a id=\"c\"></a>[d](e.md#f) `[g](h.md)` ![i](j.png)\n",
    );
    assert_eq!(page.anchors, HashSet::from(["a", "a-1", "c"].map(str::to_owned)));
    assert_eq!(page.links, ["e.md#f", "j.png"]);
}
