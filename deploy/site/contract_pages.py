"""The reference of the contract, from the descriptors of proto/ and the comments in them: a page a service."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    MethodOptions,
)
from markup import anchor, cell, table, text

from memoryd.http.openapi import ENUM, FIELD_OF, MESSAGE, METHOD_OF, SERVICE, VALUE_OF, comments_of

__all__ = ["contract_pages", "page_of"]

TYPES = "types.md"
Field = FieldDescriptorProto
PLAIN: Mapping[int, str] = {
    value: name.removeprefix("TYPE_").lower() for name, value in FieldDescriptorProto.Type.items()
}
ERROR = re.compile(r"([A-Z_]+ \([A-Z_]+\))")


def contract_pages(contract: FileDescriptorSet, package: str, over_http: Collection[str]) -> dict[str, str]:
    """Return the pages by their names: one a service, and one of the types; over_http names paths."""
    files = [file for file in contract.file if file.package == package]
    reference = _Reference(files, over_http)
    pages = {}
    for file in files:
        for n, service in enumerate(file.service):
            pages[page_of(service.name)] = "\n".join(reference.service(file, n))
    pages[TYPES] = "\n".join(reference.types())
    return pages


def page_of(service: str) -> str:
    """Return the page of a service."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", service).lower() + ".md"


class _Reference:
    """All messages and enums of some files, and which page each is on."""

    def __init__(self, files: list[FileDescriptorProto], over_http: Collection[str]) -> None:
        self.files = files
        self.over_http = over_http
        self.comments = {file.name: comments_of(file) for file in files}
        self.messages: dict[str, tuple[DescriptorProto, str, int]] = {}
        self.entries: dict[str, DescriptorProto] = {}
        self.places: dict[str, str] = {}
        for file in files:
            for one in (*file.message_type, *file.enum_type):
                self.places[f".{file.package}.{one.name}"] = f"{TYPES}#{anchor(one.name)}"
            for n, message in enumerate(file.message_type):
                name = f".{file.package}.{message.name}"
                self.messages[name] = (message, file.name, n)
                self.entries |= {f"{name}.{one.name}": one for one in message.nested_type if one.options.map_entry}
        self.own: set[str] = set()
        for service in (service for file in files for service in file.service):
            for method in service.method:
                own = (method.input_type, method.output_type)
                self.own.update(own)
                self.places |= dict.fromkeys(own, f"{page_of(service.name)}#{anchor(method.name)}")

    def service(self, file: FileDescriptorProto, n: int) -> Iterator[str]:
        """Yield the lines of a service's page."""
        service, comments = file.service[n], self.comments[file.name]
        yield from (f"# {service.name}", "", "*Reference for authors of programs that call the daemon.*", "")
        yield from (f"`{file.package}.{service.name}`, in `proto/{file.name}`.", "")
        yield from _paragraphs(comments[SERVICE, n])
        yield from table(
            ("RPC", "what it does"),
            (
                (f"[`{method.name}`](#{anchor(method.name)})", cell(_first(comments[SERVICE, n, METHOD_OF, m])))
                for m, method in enumerate(service.method)
            ),
        )
        for m, method in enumerate(service.method):
            yield from self._method(file, service.name, method, comments[SERVICE, n, METHOD_OF, m])

    def _method(
        self, file: FileDescriptorProto, service: str, method: MethodDescriptorProto, comment: str
    ) -> Iterator[str]:
        yield from (f"## {method.name}", "", *_paragraphs(comment))
        if method.options.idempotency_level == MethodOptions.NO_SIDE_EFFECTS:
            yield from ("A client may ask again at will (`NO_SIDE_EFFECTS`).", "")
        for what, name in (("Request", method.input_type), ("Answer", method.output_type)):
            yield from (f"**{what}** `{name.rpartition('.')[2]}`", "", *self._fields(name))
        path = f"/{file.package}.{service}/{method.name}"
        if path in self.over_http:
            yield from (f"[Over HTTP](../http.md): `{path}`", "")

    def types(self) -> Iterator[str]:
        """Yield the lines of the page of all that is neither a request nor an answer."""
        yield from ("# Types of the contract", "", "*Reference for authors of programs that call the daemon.*", "")
        yield from ("Messages and enums that more than one RPC knows, by the file that they are in.", "")
        for file in self.files:
            comments = self.comments[file.name]
            shared = [one for one in file.message_type if f".{file.package}.{one.name}" not in self.own]
            if not shared and not file.enum_type:
                continue
            yield from (f"## `proto/{file.name}`", "")
            for message in shared:
                name = f".{file.package}.{message.name}"
                comment = comments[MESSAGE, self.messages[name][2]]
                yield from (f"### {message.name}", "", *_paragraphs(comment), *self._fields(name))
            for n, enum in enumerate(file.enum_type):
                yield from _enum(enum, n, comments)

    def _fields(self, name: str) -> list[str]:
        message, file, n = self.messages[name]
        if not message.field:
            return ["No fields.", ""]
        comments = self.comments[file]
        rows = (
            (
                f"`{field.name}`",
                self._type(field),
                cell(self._meaning(message, field, comments[MESSAGE, n, FIELD_OF, m])),
            )
            for m, field in enumerate(message.field)
        )
        return table(("field", "type", "meaning"), rows)

    @staticmethod
    def _meaning(message: DescriptorProto, field: Field, comment: str) -> str:
        if field.HasField("oneof_index") and not field.proto3_optional:
            return f"{comment} At most one of `{message.oneof_decl[field.oneof_index].name}` is set."
        return comment

    def _type(self, field: Field) -> str:
        entry = self.entries.get(field.type_name)
        if entry is not None:
            return f"map of {self._one(entry.field[0])} to {self._one(entry.field[1])}"
        if field.label == Field.LABEL_REPEATED:
            return f"repeated {self._one(field)}"
        return f"optional {self._one(field)}" if field.proto3_optional else self._one(field)

    def _one(self, field: Field) -> str:
        if field.type not in {Field.TYPE_MESSAGE, Field.TYPE_ENUM}:
            return PLAIN[field.type]
        place = self.places.get(field.type_name)
        if place is None:
            return f"`{field.type_name.removeprefix('.')}`"
        return f"[{field.type_name.rpartition('.')[2]}]({place})"


def _enum(enum: EnumDescriptorProto, n: int, comments: Mapping[tuple[int, ...], str]) -> Iterator[str]:
    yield from (f"### {enum.name}", "", *_paragraphs(comments[ENUM, n]))
    yield from table(
        ("value", "number", "meaning"),
        (
            (f"`{value.name}`", str(value.number), cell(comments[ENUM, n, VALUE_OF, m]))
            for m, value in enumerate(enum.value)
        ),
    )


def _first(comment: str) -> str:
    return comment.partition(". ")[0].partition(" Errors: ")[0].rstrip(".")


def _paragraphs(comment: str) -> Iterator[str]:
    """Yield what a comment says, then its errors as a list: code (reason): when; what to do."""
    said, _, errors = re.sub(r"Errors of every RPC:", "Errors:", comment).partition("Errors: ")
    yield from (text(said.strip()), "")
    if not errors:
        return
    first, *pairs = ERROR.split(errors)
    yield from ("Errors" + (f": {text(first.strip())}" if first.strip() else ":"), "")
    for code, told in zip(pairs[::2], pairs[1::2], strict=True):
        yield f"- `{code}`{text(told.rstrip())}"
    yield from ([""] if pairs else [])
