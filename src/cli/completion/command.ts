import { Argument, Command } from 'commander';
import { bashCompletion } from './bash.ts';
import { fishCompletion } from './fish.ts';
import { zshCompletion } from './zsh.ts';
import { print, type Io } from '../io.ts';
import { commandTree, type CommandNode } from '../tree.ts';

const HELP = `
Examples:
  source <(millrace completion bash)                                        this bash only
  millrace completion bash > ~/.local/share/bash-completion/completions/millrace
  millrace completion zsh > "\${fpath[1]}/_millrace"
  millrace completion fish > ~/.config/fish/completions/millrace.fish

Completes commands, options, their values, and file names. The script is generated from the commands: generate it again
after an update. It starts no program while you type.`;

const SHELLS = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
} as const satisfies Record<string, (root: CommandNode) => string>;

export function completionCommand(io: Io): Command {
  return new Command('completion')
    .description('print a script that completes millrace in your shell')
    .addArgument(new Argument('<shell>', 'the shell it is for').choices(Object.keys(SHELLS)))
    .addHelpText('after', HELP)
    .action((shell: keyof typeof SHELLS, _options: object, self: Command) => {
      print(io, SHELLS[shell](commandTree(self.parent ?? self)).trimEnd());
    });
}
