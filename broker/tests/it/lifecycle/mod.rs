//! Start, settings, figures, documents, end.

mod documents;
mod figures;
mod files;
mod logs;
mod recovering;
mod settings;
mod stop;
