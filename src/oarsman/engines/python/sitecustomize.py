"""Ends a rank that failed, instead of letting it wait for the others. Every Python that a rank starts reads this first.

mpi4py calls MPI_Finalize when Python ends, which waits for the other ranks; those wait in a receive or a barrier for
the one that failed, and the job hangs. A launcher that sees a rank end with an error ends the others. So after an
exception, or `sys.exit` with a code, Python leaves without MPI_Finalize. Whoever never imported mpi4py notices nothing.

With OARSMAN_ABORT it calls MPI_Abort instead: where only the launcher tells how ranks ended, and Hydra mixes their
codes with those of the ranks that it kills.

It runs in the Python of the user's program, whatever version that is: nothing here needs a new one.
"""

import atexit
import os
import sys


class _Exit(SystemExit):
    """As `sys.exit` raises it. Nobody but Python itself, which has given up the program, asks for the code from outside
    of any function: one that is caught is not asked so, and the program goes on."""

    @property
    def code(self):
        code = self.args[0] if len(self.args) == 1 else self.args or None
        try:
            sys._getframe(1)
        except ValueError:
            _ended_with.append(_of_process(code))
        return code

    def __reduce__(self):  # another process may not know this class
        return SystemExit, self.args


_ended_with = [0]  # and what sys.exit has ended this process with


def _begin():
    process = os.getpid()
    plain_exit = sys.exit

    def exit_and_tell(status=None):
        if not _in_main_thread():
            plain_exit(status)  # which ends that thread alone
        raise _Exit(*(status if isinstance(status, tuple) else () if status is None else (status,)))

    exit_and_tell.__name__ = "exit"
    exit_and_tell.__doc__ = plain_exit.__doc__
    sys.exit = exit_and_tell
    quitter = type(exit)  # of exit() and quit(), which are there if site is, as it is here
    if quitter.__name__ == "Quitter":
        call = quitter.__call__

        def quit_and_tell(self, code=None):
            try:
                call(self, code)
            except SystemExit:
                sys.exit(code)

        quitter.__call__ = quit_and_tell
    _Exit.__name__ = _Exit.__qualname__ = "SystemExit"
    _Exit.__module__ = "builtins"

    def leave():
        code = 1 if _ended_by_exception() else _ended_with[-1]
        if code and os.getpid() == process and _waits_for_others():
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except Exception:  # closed, or a pipe that nobody reads
                    pass
            if os.environ.get("OARSMAN_ABORT"):
                sys.modules["mpi4py.MPI"].COMM_WORLD.Abort(code)
            os._exit(code)

    atexit.register(leave)  # the first to register is the last to be called


def _in_main_thread():
    threading = sys.modules.get("threading")
    return threading is None or isinstance(threading.current_thread(), threading._MainThread)


def _of_process(code):
    """As Python makes it of what it was given."""
    if code is None:
        return 0
    return code & 255 if isinstance(code, int) else 1


def _ended_by_exception():
    """One that was printed, and had left the very first function. Others print theirs and go on."""
    traceback = getattr(sys, "last_traceback", None)
    return traceback is not None and traceback.tb_frame.f_back is None


def _waits_for_others():
    mpi = sys.modules.get("mpi4py.MPI")
    return mpi is not None and mpi.Is_initialized() and not mpi.Is_finalized()


def _step_aside():
    """Python reads one sitecustomize: the one that stands behind this is to be read, too."""
    here = os.path.dirname(__file__)
    sys.path[:] = [folder for folder in sys.path if folder != here]
    own = sys.modules.pop("sitecustomize")
    sys.modules["oarsman_sitecustomize"] = own  # Python 2 empties a module that nobody has any more
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        sys.modules["sitecustomize"] = own


_begin()
_step_aside()
