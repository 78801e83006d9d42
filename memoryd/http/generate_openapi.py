"""Write openapi.json from proto/, or with --check see that it is what would be written."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from memoryd.http.door import FILES, methods
from memoryd.http.openapi import document

ROOT = Path(__file__).parents[2]
TARGET = Path(__file__).with_name("openapi.json")
VERSION = "v1"  # of the contract


def contract() -> FileDescriptorSet:
    """Return the descriptors of proto/, with their comments."""
    from grpc_tools import protoc  # type: ignore[import-untyped]

    include = Path(protoc.__file__).parent / "_proto"
    names = sorted(str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto").glob("memoryd/v1/*.proto"))
    with tempfile.NamedTemporaryFile() as made:
        options = ["--include_source_info", "--include_imports", f"--descriptor_set_out={made.name}"]
        code = protoc.main(["protoc", f"-I{ROOT / 'proto'}", f"-I{include}", *options, *names])
        if code:
            raise SystemExit(code)
        return FileDescriptorSet.FromString(Path(made.name).read_bytes())


def main() -> None:
    """Write it, or check it."""
    wanted = [file.DESCRIPTOR.name for file in FILES]
    text = (
        json.dumps(
            document(contract(), wanted, {method.path for method in methods()}, VERSION), indent=1, ensure_ascii=False
        )
        + "\n"
    )
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, encoding="utf-8")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        raise SystemExit("memoryd/http/openapi.json is stale: run make openapi")


if __name__ == "__main__":
    main()
