//! Warnings: what is probably not meant so in a request that is carried out all the same.

use wire::Fault;

/// Puts a member `warnings` at the end of an object, as JSON text, where there are warnings.
pub(crate) fn insert(mut object: String, warnings: &[Fault]) -> String {
    if !warnings.is_empty() && object.ends_with('}') {
        object.pop();
        object.push_str(r#","warnings":"#);
        object.push_str(&serde_json::to_string(warnings).unwrap_or_default());
        object.push('}');
    }
    object
}

/// Bytes that warnings take in an answer, or somewhat fewer where their texts have escapes.
pub(crate) fn bytes(warnings: &[Fault]) -> usize {
    warnings.iter().map(|warning| 32 + warning.pointer.len() + warning.detail.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_gets_a_member_where_there_are_warnings() {
        let warning = Fault { pointer: "/a".to_owned(), detail: "is \"odd\"".to_owned() };
        assert_eq!(insert(r#"{"op":"ok"}"#.to_owned(), &[]), r#"{"op":"ok"}"#);
        let warned = insert(r#"{"op":"ok"}"#.to_owned(), std::slice::from_ref(&warning));
        assert_eq!(warned, r#"{"op":"ok","warnings":[{"pointer":"/a","detail":"is \"odd\""}]}"#);
        assert!(bytes(&[warning]) > 32 && bytes(&[]) == 0);
    }
}
