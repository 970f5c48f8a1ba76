//! Start, settings, figures, documents, end.

mod documents;
mod figures;
mod files;
mod settings;
mod stop;
