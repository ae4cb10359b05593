"""One io_submit on an O_DIRECT file, through libaio.so.1: does asynchronous I/O work in this folder? Says "ok" or why not."""

import ctypes
import mmap
import os
import sys

BLOCK = 4096


class IoCb(ctypes.Structure):
    """struct iocb of linux/aio_abi.h (little endian)."""

    _fields_ = [
        ("data", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("rw_flags", ctypes.c_uint32),
        ("opcode", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("fd", ctypes.c_uint32),
        ("buf", ctypes.c_uint64),
        ("nbytes", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("reserved", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("resfd", ctypes.c_uint32),
    ]


class IoEvent(ctypes.Structure):
    """struct io_event of linux/aio_abi.h."""

    _fields_ = [("data", ctypes.c_uint64), ("obj", ctypes.c_uint64), ("res", ctypes.c_int64), ("res2", ctypes.c_int64)]


def trial(folder):
    library = None
    for name in ("libaio.so.1", "libaio.so.1t64"):
        try:
            library = ctypes.CDLL(name, use_errno=True)
            break
        except OSError:
            continue
    if library is None:
        return "no library libaio.so.1"
    context = ctypes.c_void_p()
    failed = library.io_setup(8, ctypes.byref(context))
    if failed:
        return "io_setup: %s" % os.strerror(-failed)
    path = os.path.join(folder, ".dsdoctor-aio-%d" % os.getpid())
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_DIRECT, 0o600)
    try:
        os.unlink(path)
        buffer = mmap.mmap(-1, BLOCK)
        address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        block = IoCb(opcode=1, fd=descriptor, buf=address, nbytes=BLOCK)
        blocks = (ctypes.c_void_p * 1)(ctypes.addressof(block))
        submitted = library.io_submit(context, ctypes.c_long(1), blocks)
        if submitted != 1:
            return "io_submit: %s" % os.strerror(-submitted)
        event = IoEvent()
        got = library.io_getevents(context, ctypes.c_long(1), ctypes.c_long(1), ctypes.byref(event), None)
        if got != 1:
            return "io_getevents: %s" % os.strerror(-got)
        return "ok" if event.res == BLOCK else "the write gave %d" % event.res
    finally:
        os.close(descriptor)


descriptor = int(sys.argv[sys.argv.index("--answer-fd") + 1])
try:
    words = trial(sys.argv[1])
except OSError as error:
    words = "%s: %s" % (type(error).__name__, error.strerror)
os.write(descriptor, words.encode())
