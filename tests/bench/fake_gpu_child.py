"""A child in the place of bench/gpu_child.py, whose parts end in every way that there is. It notes
each part that it is asked in the file $FAKE_GPU_LOG."""

import os
import time
from pathlib import Path

from gnnc.frontend.tools.children import Message, serve


def work(question: Message) -> Message:
    with Path(os.environ["FAKE_GPU_LOG"]).open("a") as log:
        print(os.getpid(), question["do"], question["device"], file=log)
    match question["do"]:
        case "fails":
            return {"error": "CUDA error: an illegal memory access", "out_of_memory": False}
        case "dies":
            os._exit(3)
        case "sleeps":
            time.sleep(60)
        case "is wrong":
            return {"result": {"good": False}}
        case _:
            pass
    return {"result": {"value": question["do"]}}


if __name__ == "__main__":
    serve(work)
