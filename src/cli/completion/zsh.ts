import { walk, type ArgumentNode, type CommandNode, type OptionNode, type Value } from '../tree.ts';

/** A completion script for zsh, for a folder of \`fpath\` or to be sourced: a function for each command. */
export function zshCompletion(root: CommandNode): string {
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
    (child) => `      '${quoted(`${child.path.at(-1)}:${child.description}`)}'`,
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
  if (value === null) return `'${quoted(`${long}${what}`)}'`;
  return `'${quoted(`${repeatable ? '*' : ''}${long}=${what}:${long.slice(2)}:${actionFor(value)}`)}'`;
}

function argumentSpec({ usage, value }: ArgumentNode): string {
  const name = usage.replaceAll(/[<>[\].]/g, '');
  return `'${quoted(`${usage.includes('...') ? '*' : ''}:${name}:${actionFor(value)}`)}'`;
}

function actionFor(value: Value): string {
  if (value.kind === 'choice') return `(${value.choices.join(' ')})`;
  if (value.kind === 'text') return ' ';
  return value.kind === 'folder' ? '_files -/' : '_files';
}

const quoted = (text: string): string => text.replaceAll("'", String.raw`'\''`);
