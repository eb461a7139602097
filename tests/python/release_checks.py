"""What the scripts that try a plug-in with an engine's release have in common."""


class Checks:
    """A line each; `exit_code` of them all."""

    def __init__(self):
        self.exit_code = 0

    def __call__(self, what, is_right):
        print(f"{'ok   ' if is_right else 'WRONG'} {what}", flush=True)
        if not is_right:
            self.exit_code = 1
