"""Print what lets a shell complete commands, flags and methods.

crowdwise completion bash > ~/.local/share/bash-completion/completions/crowdwise
crowdwise completion zsh > ~/.zsh-crowdwise    # and: source ~/.zsh-crowdwise, after compinit
crowdwise completion fish > ~/.config/fish/completions/crowdwise.fish
"""

from argparse import ArgumentParser, Namespace

from crowdwise.cli.shells import SHELLS, describe


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="which shell to write for")


def run(args: Namespace) -> int:
    print(SHELLS[args.shell](describe()))
    return 0
