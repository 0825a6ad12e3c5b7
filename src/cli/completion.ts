import { Argument, Command } from 'commander';
import { print, type Io } from './io.ts';
import {
  commandTree,
  type CommandNode,
  walk,
  type Value,
  type OptionNode,
  type ArgumentNode,
} from './tree.ts';

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

/** A completion script for bash; needs nothing but bash 4. Where files are wanted it leaves the word to readline. */
function bashCompletion(root: CommandNode): string {
  const nodes = [...walk(root)];
  return `# Completes millrace in bash. Made by \`millrace completion bash\`.
_millrace() {
  local at='' cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD - 1]} words='' options='' files='' i
  # readline takes --option=value apart at the sign.
  if [[ $cur == = ]]; then cur=''; elif [[ $prev == = ]]; then prev=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$at \${COMP_WORDS[i]}" in
      ${patterns(nodes.filter(({ path }) => path.length > 0).map(keyOf))}) at="$at \${COMP_WORDS[i]}" ;;
    esac
  done
  COMPREPLY=()
  case "$at $prev" in
${values(nodes)}
  esac
  case "$at" in
${nodes.map(wordsCase).join('\n')}
  esac
  if [[ $cur == -* || ( -z $words && -z $files ) ]]; then words=$options; fi
  if [[ -z $files ]]; then compopt +o default 2>/dev/null; fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o default -F _millrace millrace
`;
}

/** A command's path with a space before each word, as the script's \`$at\` has it. */
const keyOf = ({ path }: CommandNode): string => path.map((word) => ` ${word}`).join('');

const patterns = (words: readonly string[]): string => words.map((word) => `'${word}'`).join(' | ');

/** What follows an option: a choice, files, or something only the user knows. */
function values(nodes: readonly CommandNode[]): string {
  const byAnswer = new Map<string, string[]>();
  for (const node of nodes) {
    for (const { long, value } of node.options) {
      if (value === null) continue;
      const answer = answerFor(value);
      byAnswer.set(answer, [...(byAnswer.get(answer) ?? []), `${keyOf(node)} ${long}`]);
    }
  }
  return Array.from(byAnswer, ([answer, keys]) => `    ${patterns(keys)}) ${answer}; return ;;`).join('\n');
}

function answerFor(value: Value): string {
  if (value.kind === 'choice')
    return `mapfile -t COMPREPLY < <(compgen -W '${value.choices.join(' ')}' -- "$cur")`;
  if (value.kind === 'text') return 'compopt +o default 2>/dev/null';
  return value.kind === 'folder' ? 'compopt -o dirnames +o default 2>/dev/null' : ':';
}

function wordsCase(node: CommandNode): string {
  const choices = node.arguments.flatMap(({ value }) => (value.kind === 'choice' ? value.choices : []));
  const words = [...node.commands.map(({ path }) => path.at(-1) ?? ''), ...choices].join(' ');
  const options = node.options.map(({ long }) => long).join(' ');
  const files = node.arguments.some(({ value }) => value.kind === 'file' || value.kind === 'folder');
  return `    '${keyOf(node)}') words='${words}' options='${options}' files=${files ? 'yes' : ''} ;;`;
}

function fishCompletion(root: CommandNode): string {
  const nodes = [...walk(root)];
  const paths = nodes.filter(({ path }) => path.length > 0).map(({ path }) => `'${path.join(' ')}'`);
  return `# Completes millrace in fish. Made by \`millrace completion fish\`.
function __millrace_at
    set -l path ''
    for word in (commandline -opc)[2..]
        set -l next (string trim -- "$path $word")
        contains -- $next ${paths.join(' ')}; and set path $next
    end
    test "$path" = "$argv"
end

complete -c millrace -f
${nodes.flatMap(linesFor).join('\n')}
`;
}

function linesFor(node: CommandNode): string[] {
  const here = `complete -c millrace -n '__millrace_at ${node.path.join(' ')}'`;
  const choices = node.arguments.flatMap(({ value }) => (value.kind === 'choice' ? value.choices : []));
  const files = node.arguments.some(({ value }) => value.kind === 'file' || value.kind === 'folder');
  return [
    ...node.commands.map(
      (child) => `${here} -a ${child.path.at(-1)} -d '${quotedForFish(child.description)}'`,
    ),
    ...(choices.length === 0 ? [] : [`${here} -a '${choices.join(' ')}'`]),
    ...(files ? [`${here} -F`] : []),
    ...node.options.map((option) => `${here} ${optionWords(option)}`),
  ];
}

function optionWords({ long, short, description, value }: OptionNode): string {
  const names = `${short === null ? '' : `-s ${short.slice(1)} `}-l ${long.slice(2)}`;
  return `${names}${value === null ? '' : ` ${valueWords(value)}`} -d '${quotedForFish(description)}'`;
}

function valueWords(value: Value): string {
  if (value.kind === 'choice') return `-x -a '${value.choices.join(' ')}'`;
  if (value.kind === 'text') return '-x';
  return value.kind === 'folder' ? "-x -a '(__fish_complete_directories)'" : '-r -F';
}

const quotedForFish = (text: string): string => text.replaceAll(/[\\']/g, String.raw`\$&`);

/** A completion script for zsh, for a folder of \`fpath\` or to be sourced: a function for each command. */
function zshCompletion(root: CommandNode): string {
  const functions = Array.from(walk(root), (node) =>
    node.commands.length === 0 ? leafFunction(node) : parentFunction(node),
  ).join('\n\n');
  return `#compdef millrace
# Completes millrace in zsh. Made by \`millrace completion zsh\`.

${functions}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _millrace "$@"; else compdef _millrace millrace; fi
`;
}

const nameOf = ({ path }: CommandNode): string => ['_millrace', ...path].join('__').replaceAll('-', '_');

function leafFunction(node: CommandNode): string {
  const specs = [...node.options.map(optionSpec), ...node.arguments.map(argumentSpec)];
  return `${nameOf(node)}() {\n  _arguments -s \\\n${specs.map((spec) => `    ${spec}`).join(' \\\n')}\n}`;
}

function parentFunction(node: CommandNode): string {
  const children = node.commands.map(
    (child) => `      '${quotedForZsh(`${child.path.at(-1)}:${child.description}`)}'`,
  );
  const calls = node.commands.map((child) => `        ${child.path.at(-1)}) ${nameOf(child)} ;;`);
  return `${nameOf(node)}() {
  local context state state_descr line
  typeset -A opt_args
  _arguments -C \\
${node.options.map((option) => `    ${optionSpec(option)} \\`).join('\n')}
    '1: :->command' '*:: :->rest'
  case $state in
    command)
      local -a commands=(
${children.join('\n')}
      )
      _describe command commands
      ;;
    rest)
      case $words[1] in
${calls.join('\n')}
      esac
      ;;
  esac
}`;
}

function optionSpec({ long, description, value, repeatable }: OptionNode): string {
  const what = `[${description.replaceAll(/[[\]\\]/g, String.raw`\$&`)}]`;
  if (value === null) return `'${quotedForZsh(`${long}${what}`)}'`;
  return `'${quotedForZsh(`${repeatable ? '*' : ''}${long}=${what}:${long.slice(2)}:${actionFor(value)}`)}'`;
}

function argumentSpec({ usage, value }: ArgumentNode): string {
  const name = usage.replaceAll(/[<>[\].]/g, '');
  return `'${quotedForZsh(`${usage.includes('...') ? '*' : ''}:${name}:${actionFor(value)}`)}'`;
}

function actionFor(value: Value): string {
  if (value.kind === 'choice') return `(${value.choices.join(' ')})`;
  if (value.kind === 'text') return ' ';
  return value.kind === 'folder' ? '_files -/' : '_files';
}

const quotedForZsh = (text: string): string => text.replaceAll("'", String.raw`'\''`);
