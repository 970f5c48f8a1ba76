//! Schemas that the types do not tell by themselves.

use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};

/// Schema of a value that goes on as it was written: a number, a text or null.
pub(crate) fn number_or_text() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Number, Type::String, Type::Null]))
        .description(Some("A number or a text, which comes back as it was written."))
        .build()
}
