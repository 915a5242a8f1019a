"""Take the network away from a process: GDAL follows addresses in files, and an import must not."""

import ctypes
import errno
import platform
import struct
import sys

# Options of GDAL and PROJ for systems whose kernel has no such filter: no remote files, and a proxy that is not there.
OPTIONS = {
    "CPL_VSIL_CURL_ALLOWED_FILENAME": "/vsicurl/none",
    "GDAL_HTTP_CONNECTTIMEOUT": "1",
    "GDAL_HTTP_MAX_RETRY": "0",
    "GDAL_HTTP_PROXY": "127.0.0.1:0",
    "GDAL_HTTP_TIMEOUT": "1",
    "OGR_SQLITE_ALLOW_EXTERNAL_ACCESS": "NO",
    "PROJ_NETWORK": "OFF",
}

# linux/prctl.h, linux/seccomp.h, linux/filter.h
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
LOAD_WORD, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000 | errno.EACCES
NUMBER_AT, ARCHITECTURE_AT = 0, 4
# For each architecture, its number in linux/audit.h and the number of socket(2). The number of io_uring_setup(2) is the
# same on all of them.
ARCHITECTURES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
IO_URING_SETUP = 425
# From this number on, system calls on x86_64 belong to another calling convention, which is not used.
FOREIGN_NUMBERS = 0x40000000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def go_offline() -> bool:
    """Take the right to open sockets away from this process for ever; return whether the kernel did so.

    Threads and processes that it starts do not have the right either. Only Linux can do so, on x86-64 and ARM64.

    References
    ----------
    Linux manual, seccomp(2): a filter of system calls in classic BPF, which a process can add to itself.
    """
    if sys.platform != "linux" or platform.machine() not in ARCHITECTURES:
        return False
    code = _filter(*ARCHITECTURES[platform.machine()])
    kept = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(kept))
    libc = ctypes.CDLL(None)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        return False
    return libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0


def _filter(architecture: int, socket: int) -> bytes:
    """Return the filter: sockets, io_uring and system calls of another architecture fail; all others are allowed."""
    steps = (
        (LOAD_WORD, 0, 0, ARCHITECTURE_AT),
        (JUMP_IF_EQUAL, 0, 5, architecture),
        (LOAD_WORD, 0, 0, NUMBER_AT),
        (JUMP_IF_AT_LEAST, 3, 0, FOREIGN_NUMBERS),
        (JUMP_IF_EQUAL, 2, 0, socket),
        (JUMP_IF_EQUAL, 1, 0, IO_URING_SETUP),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, FAIL),
    )
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
