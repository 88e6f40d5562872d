"""``limpet completion``: the script that teaches a shell to complete; it asks ``bot.cli.words`` at each Tab."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from bot.cli import output

_BASH = """\
# To have it in every shell, add to ~/.bashrc: eval "$(limpet completion bash)"
_limpet() {
    local IFS=$'\\n' word before n=0
    local -a words
    # bash cuts words at ":", as in telegram:123. They are put together again; what bash has of one already is cut off.
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        if [[ $n -gt 0 && ( $word == : || ${words[n-1]} == *: ) ]]; then
            words[n-1]+=$word
        else
            words[n++]=$word
        fi
    done
    COMPREPLY=($(limpet completion --words "${words[@]}" 2>/dev/null))
    [[ $COMP_WORDBREAKS != *:* ]] && return
    before=${words[n-1]%"${words[n-1]##*:}"}
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
}
complete -o default -F _limpet limpet
"""

_ZSH = """\
#compdef limpet
# To have it in every shell, add to ~/.zshrc, after compinit: eval "$(limpet completion zsh)"
_limpet() {
    local -a candidates
    candidates=("${(@f)$(limpet completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    compadd -a candidates
}
compdef _limpet limpet
"""

_FISH = """\
# To have it in every shell, once: limpet completion fish > ~/.config/fish/completions/limpet.fish
function __limpet_words
    set -l tokens (commandline -opc)
    limpet completion --words $tokens[2..-1] (commandline -ct) 2>/dev/null
end
complete -c limpet -f -a '(__limpet_words)'
"""

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def command(shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Your shell.")]) -> None:
    """Print the script that completes commands, agents, channels and notes with the Tab key."""
    output.result(_SCRIPTS[shell].rstrip("\n"), {}, as_json=False)
