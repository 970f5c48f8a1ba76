//! Start, settings, figures, documents, end.

mod documents;
mod figures;
mod settings;
mod stop;
