//! Schemas that the types do not tell by themselves.

use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};

/// Of what goes on as it was written.
pub(crate) fn number_or_text() -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Number, Type::String, Type::Null]))
        .description(Some("A number or a text, which comes back as it was written."))
        .build()
}
