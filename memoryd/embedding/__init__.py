"""From text to vectors: a packaged model, a directory, an endpoint, or nothing."""

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # onnxruntime would keep a device id in the home directory, and call home
