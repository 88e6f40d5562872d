"""What keys and tokens of well-known services look like: the one list for notes, logs and messages.

Standard library only, since a log has to be able to afford it. A shape is taken only where ordinary text can't have it.
"""

from __future__ import annotations

import re

KEY = re.compile(
    r"""
      -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | (?<!\d)\d{6,12}:(?:AA[A-Za-z0-9_-]{10,}|[A-Za-z0-9_-]{30,})       # Telegram, also within /bot<token>/getMe
    | \b(?:                                                             # asked for once: a log looks at every line
          (?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}                            # OpenAI, Anthropic, Stripe and their kin
        | (?:AKIA|ASIA)[0-9A-Z]{16}\b                                   # AWS
        | (?:gh[pousr]_|github_pat_|glpat-|hf_|gsk_|npm_|pypi-)[A-Za-z0-9_-]{16,}
        | xox[a-z]-[A-Za-z0-9-]{10,} | xapp-[A-Za-z0-9-]{10,}           # Slack
        | [MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}   # Discord
        | AIza[A-Za-z0-9_-]{30,}                                        # Google
        | eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*     # JSON web tokens
    )
    """,
    re.VERBOSE | re.DOTALL,
)
