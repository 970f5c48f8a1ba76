"""Bodies that Schemathesis does not know how to write: their schema is a text, which is what they are."""

import schemathesis


@schemathesis.serializer("application/x-ndjson", "application/geo+json-seq")
def lines(_context, value):
    return str(value).encode("utf-8", "surrogatepass")
