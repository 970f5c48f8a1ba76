//! XML as elements and texts, each with its line.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::Fault;
use super::text::quoted;

/// A document that is read on from where it is.
pub(super) struct Source<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
}

/// The beginning of an element.
pub(super) struct Element<'a> {
    start: BytesStart<'a>,
    /// Its byte in the document.
    pub(super) at: usize,
}

impl Element<'_> {
    pub(super) fn name(&self) -> String {
        self.start.name().as_ref().to_owned()
    }
}

enum Part<'a> {
    Begin(Element<'a>),
    Text(String),
    End,
    EndOfDocument,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut reader = Reader::from_str(text);
        reader.config_mut().expand_empty_elements = true;
        Self { text, reader }
    }

    /// A fault at a byte of the document.
    pub(super) fn fault(&self, at: usize, problem: impl Into<String>) -> Fault {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        Fault { line: before.iter().filter(|byte| **byte == b'\n').count() + 1, problem: problem.into() }
    }

    fn here(&self) -> usize {
        usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX)
    }

    fn part(&mut self) -> Result<Part<'a>, Fault> {
        loop {
            let at = self.here();
            let event = self.reader.read_event().map_err(|error| {
                let at = usize::try_from(self.reader.error_position()).unwrap_or(usize::MAX);
                self.fault(at, error.to_string())
            })?;
            let refused = match event {
                Event::Start(start) | Event::Empty(start) => return Ok(Part::Begin(Element { start, at })),
                Event::End(_) => return Ok(Part::End),
                Event::Text(text) => return Ok(Part::Text(text.into_inner().into_owned())),
                Event::Eof => return Ok(Part::EndOfDocument),
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => continue,
                Event::DocType(_) => "a document type is not taken",
                Event::GeneralRef(_) => "an entity where none belongs",
                Event::CData(_) => "a section of CDATA where none belongs",
            };
            return Err(self.fault(at, refused));
        }
    }

    /// The next element in the one that is open; `None` at its end.
    pub(super) fn child(&mut self) -> Result<Option<Element<'a>>, Fault> {
        loop {
            let at = self.here();
            match self.part()? {
                Part::Begin(element) => return Ok(Some(element)),
                Part::End => return Ok(None),
                Part::Text(text) if text.trim_ascii().is_empty() || text == "\u{feff}" => {}
                Part::Text(text) => {
                    let problem = format!("{} where an element was to begin", quoted(text.trim_ascii()));
                    return Err(self.fault(at, problem));
                }
                Part::EndOfDocument => return Err(self.fault(at, "the document ends too soon")),
            }
        }
    }

    /// Reads on to the end of the document, in which nothing may follow.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        loop {
            let at = self.here();
            match self.part()? {
                Part::EndOfDocument => return Ok(()),
                Part::Text(text) if text.trim_ascii().is_empty() => {}
                Part::Text(_) | Part::Begin(_) | Part::End => {
                    return Err(self.fault(at, "something behind the end of <instance>"));
                }
            }
        }
    }

    /// The text of an element that has nothing else, to its end.
    pub(super) fn content(&mut self, of: &Element<'_>) -> Result<String, Fault> {
        let mut content = String::new();
        loop {
            match self.part()? {
                Part::Text(text) => content.push_str(&text),
                Part::End => return Ok(content),
                Part::Begin(element) => {
                    let problem = format!("<{}> in <{}> is not taken", element.name(), of.name());
                    return Err(self.fault(element.at, problem));
                }
                Part::EndOfDocument => return Err(self.fault(of.at, format!("<{}> has no end", of.name()))),
            }
        }
    }

    /// The attributes of an element in the order asked for. `id`, `note` and `class` may always be there; others are refused.
    pub(super) fn attributes<const N: usize>(
        &self,
        element: &Element<'_>,
        names: [&str; N],
    ) -> Result<[Option<String>; N], Fault> {
        let mut found = [const { None }; N];
        for attribute in element.start.attributes() {
            let attribute = attribute.map_err(|error| self.fault(element.at, error.to_string()))?;
            let name = attribute.key.as_ref();
            if let Some(idx) = names.iter().position(|known| *known == name) {
                let value = attribute.normalized_value(XmlVersion::Implicit1_0);
                let value = value.map_err(|error| self.fault(element.at, error.to_string()))?;
                found[idx] = Some(value.into_owned());
            } else if !["id", "note", "class"].contains(&name) {
                let problem = format!("the attribute {name} of <{}> is not taken", element.name());
                return Err(self.fault(element.at, problem));
            }
        }
        Ok(found)
    }

    /// An element that this place does not take.
    pub(super) fn refuse<T>(&self, element: &Element<'_>, within: &str) -> Result<T, Fault> {
        Err(self.fault(element.at, format!("<{}> in <{within}> is not taken", element.name())))
    }
}
