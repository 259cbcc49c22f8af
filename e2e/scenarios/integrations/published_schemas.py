"""JSON schemas for kubeconform, from what an API server publishes of its own kinds and of the CRDs that it has.

An API server drops unknown fields silently unless a request asks it to be strict. Here each object has the
fields of its schema and no others.
"""

import json

INT_OR_STRING = {"type": ["integer", "string", "null"]}
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
OF_CRDS = "io.k8s.apiextensions-apiserver"  # whose schemas hold themselves, as fields hold fields


def write(openapi, folder):
    """One file for each kind, KIND-GROUP-VERSION.json in lower case; of the core API KIND-VERSION.json."""
    definitions = openapi["definitions"]
    for definition in definitions.values():
        for kind in definition.get("x-kubernetes-group-version-kind", ()):
            group = kind["group"].split(".")[0]
            name = "-".join(word for word in (kind["kind"], group, kind["version"]) if word)
            (folder / f"{name.lower()}.json").write_text(json.dumps(closed(definition, definitions)))


def closed(schema, definitions):
    """The schema with its references filled in, and without room for fields that it does not name."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/definitions/")
        if name == QUANTITY:
            return {"type": ["string", "number", "null"]}
        return {} if name.startswith(OF_CRDS) else closed(definitions[name], definitions)
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
        return INT_OR_STRING
    kept = {key: schema[key] for key in ("required", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems") if key in schema}
    if "type" in schema:
        kept["type"] = [schema["type"], "null"]  # an API server drops what is null
    if "items" in schema:
        kept["items"] = closed(schema["items"], definitions)
    if "properties" in schema:
        kept["properties"] = {key: closed(value, definitions) for key, value in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            kept["additionalProperties"] = False
    if isinstance(schema.get("additionalProperties"), dict):
        kept["additionalProperties"] = closed(schema["additionalProperties"], definitions)
    return kept
