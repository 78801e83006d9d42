"""The door as OpenAPI 3.1, made from the descriptors of the contract and the comments in it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodOptions,
)

__all__ = ["ENUM", "FIELD_OF", "MESSAGE", "METHOD_OF", "SERVICE", "VALUE_OF", "comments_of", "document"]

Field = FieldDescriptorProto
KNOWN: Mapping[str, Mapping[str, Any]] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "pattern": r"^-?\d+(\.\d+)?s$"},
    "google.protobuf.FieldMask": {"type": "string", "description": "Names of fields with commas between them."},
}
"""Types that JSON writes in its own way (protobuf.dev/programming-guides/json)."""
INT64 = (Field.TYPE_INT64, Field.TYPE_UINT64, Field.TYPE_SINT64)
INT32 = (Field.TYPE_INT32, Field.TYPE_UINT32, Field.TYPE_SINT32)
SERVICE, MESSAGE, ENUM = 6, 4, 5  # the fields of FileDescriptorProto that paths of comments begin with
METHOD_OF, FIELD_OF, NESTED_OF, VALUE_OF = 2, 2, 3, 2  # those within a service, a message, and an enum
ERROR = {
    "type": "object",
    "required": ["code"],
    "properties": {
        "code": {"type": "string", "description": "The code, as Connect spells it: not_found."},
        "message": {"type": "string", "description": "What is wrong, and the way out."},
        "details": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "description": "google.rpc.ErrorInfo or google.rpc.BadRequest."},
                    "value": {"type": "string", "description": "The detail, binary, in Base64 without padding."},
                    "debug": {"type": "object", "description": "The same in JSON: of ErrorInfo the reason."},
                },
            },
        },
    },
}


def document(
    contract: FileDescriptorSet, wanted: Sequence[str], served: Container[str], version: str
) -> dict[str, Any]:
    """Return the document of the methods of some files whose paths are served, with all messages that they reach."""
    book = _Book(contract)
    paths: dict[str, Any] = {}
    tags = []
    for name in wanted:
        file = book.files[name]
        comments = comments_of(file)
        for n, service in enumerate(file.service):
            full = f"{file.package}.{service.name}"
            tags.append({"name": service.name, "description": comments.get((SERVICE, n), "")})
            for m, method in enumerate(service.method):
                comment = comments.get((SERVICE, n, METHOD_OF, m), "")
                path = f"/{full}/{method.name}"
                if path not in served:
                    continue
                reads = method.options.idempotency_level == MethodOptions.NO_SIDE_EFFECTS
                paths[path] = {
                    "post": {
                        "operationId": f"{service.name}_{method.name}",
                        "tags": [service.name],
                        "summary": comment.partition(". ")[0].partition("\n")[0].rstrip("."),
                        "description": comment,
                        "x-idempotent": reads,
                        "requestBody": _content(book.reference(method.input_type), required=True),
                        "responses": {
                            "200": {
                                "description": "What the method answers.",
                                **_content(book.reference(method.output_type)),
                            },
                            "default": {"$ref": "#/components/responses/Error"},
                        },
                    }
                }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "memoryd",
            "version": version,
            "description": "The memory of AI agents over HTTP: the Connect protocol, unary. Numbers of 64 bits are"
            " strings, enums their names, times RFC 3339.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A token of memoryd: memoryd token issue."}
            },
            "responses": {
                "Error": {
                    "description": "What went wrong; the status is that of the Connect protocol.",
                    **_content({"$ref": "#/components/schemas/Error"}),
                }
            },
            "schemas": {"Error": ERROR, **book.schemas()},
        },
    }


def _content(schema: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}, **more}


def comments_of(file: FileDescriptorProto) -> dict[tuple[int, ...], str]:
    """Return the comment before each thing of a file, by its path."""
    found = {}
    for place in file.source_code_info.location:
        text = "\n".join(line.strip() for line in place.leading_comments.strip().splitlines())
        if text:
            found[tuple(place.path)] = " ".join(text.split())
    return found


class _Book:
    """All messages and enums of the contract; it notes which ones were named."""

    def __init__(self, contract: FileDescriptorSet) -> None:
        self.files = {file.name: file for file in contract.file}
        self._messages: dict[str, tuple[DescriptorProto, tuple[int, ...], dict[tuple[int, ...], str]]] = {}
        self._enums: dict[str, dict[str, Any]] = {}
        self._named: list[str] = []
        for file in contract.file:
            comments = comments_of(file)
            for n, message in enumerate(file.message_type):
                self._take(f".{file.package}.{message.name}", message, (MESSAGE, n), comments)
            for n, enum in enumerate(file.enum_type):
                values = [
                    f"{value.name}: {comments.get((ENUM, n, VALUE_OF, m), '')}" for m, value in enumerate(enum.value)
                ]
                self._enums[f".{file.package}.{enum.name}"] = {
                    "type": "string",
                    "enum": [value.name for value in enum.value],
                    "description": "\n".join([comments.get((ENUM, n), ""), *values]),
                }

    def _take(
        self, name: str, message: DescriptorProto, path: tuple[int, ...], comments: dict[tuple[int, ...], str]
    ) -> None:
        self._messages[name] = (message, path, comments)
        for n, nested in enumerate(message.nested_type):
            self._take(f"{name}.{nested.name}", nested, (*path, NESTED_OF, n), comments)

    def reference(self, name: str) -> dict[str, Any]:
        """Return what names a message or an enum."""
        known = KNOWN.get(name.removeprefix("."))
        if known is not None:
            return dict(known)
        if name not in self._named:
            self._named.append(name)
        return {"$ref": f"#/components/schemas/{name.rpartition('.')[2]}"}

    def schemas(self) -> dict[str, Any]:
        """Return the schema of all that was named, and of what those name."""
        found: dict[str, Any] = {}
        for name in self._named:  # it grows meanwhile
            found[name.rpartition(".")[2]] = self._enums.get(name) or self._message(name)
        return dict(sorted(found.items()))

    def _message(self, name: str) -> dict[str, Any]:
        message, path, comments = self._messages[name]
        properties = {}
        for n, field in enumerate(message.field):
            schema = self._field(field)
            comment = comments.get((*path, FIELD_OF, n))
            properties[field.json_name] = {**schema, **({"description": comment} if comment else {})}
        made: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if path in comments:
            made["description"] = comments[path]
        return made

    def _field(self, field: Field) -> dict[str, Any]:
        if field.label == Field.LABEL_REPEATED:
            entry = self._messages.get(field.type_name)
            if entry is not None and entry[0].options.map_entry:
                return {"type": "object", "additionalProperties": self._one(entry[0].field[1])}
            return {"type": "array", "items": self._one(field)}
        return self._one(field)

    def _one(self, field: Field) -> dict[str, Any]:
        if field.type in {Field.TYPE_MESSAGE, Field.TYPE_ENUM}:
            return self.reference(field.type_name)
        return dict(_plain(field.type))


def _plain(kind: int) -> Mapping[str, Any]:
    return next((schema for kinds, schema in _plain_types() if kind in kinds), {"type": "string"})


def _plain_types() -> Iterator[tuple[Sequence[int], Mapping[str, Any]]]:
    yield (Field.TYPE_BOOL,), {"type": "boolean"}
    yield INT32, {"type": "integer", "format": "int32"}
    yield INT64, {"type": "string", "format": "int64"}
    yield (Field.TYPE_DOUBLE, Field.TYPE_FLOAT), {"type": "number", "format": "double"}
    yield (Field.TYPE_BYTES,), {"type": "string", "format": "byte"}
