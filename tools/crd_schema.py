#!/usr/bin/env python3
"""The API conventions that a machine can check in our CRDs: structural, described, no floats, no phase, conditions as a list-map.

usage: tools/crd_schema.py FILE.yaml...     (the API server is the stronger check: e2e/scenarios)
"""

import re
import sys

import yaml


# Our own fields; what Kubernetes' types bring along (metadata, pod templates, conditions' items) is explained there.
OURS = re.compile(r"^\w+\.(spec|status)\.(?!.*(template\.|conditions\[\]|\[\]$))")


def load(path):
    with open(path) as text:
        return yaml.safe_load(text)


def walk(schema, path):
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from walk(schema["items"], path + "[]")


def problems(document):
    for version in document["spec"]["versions"]:
        root = version["schema"]["openAPIV3Schema"]
        for path, schema in walk(root, version["name"]):
            typed = "type" in schema or schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
            if not typed:
                yield f"{path}: no type: the schema is not structural"
            if schema.get("type") == "number":
                yield f"{path}: a float: use an integer or a quantity"
            if path.endswith(".status.phase"):
                yield f"{path}: conditions instead of a phase"
            if OURS.search(path) and "description" not in schema:
                yield f"{path}: no description: kubectl explain shows nothing"
            if path.endswith(".status.conditions") and schema.get("x-kubernetes-list-map-keys") != ["type"]:
                yield f"{path}: conditions are a list-map keyed by type"
            for rule in schema.get("x-kubernetes-validations", []):
                if "message" not in rule and "messageExpression" not in rule:
                    yield f"{path}: a rule without a message: {rule['rule']}"


def main():
    found = [f"{path}: {problem}" for path in sys.argv[1:] for problem in problems(load(path))]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
