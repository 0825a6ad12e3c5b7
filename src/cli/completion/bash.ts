import { walk, type CommandNode, type Value } from '../tree.ts';

/** A completion script for bash; needs nothing but bash 4. Where files are wanted it leaves the word to readline. */
export function bashCompletion(root: CommandNode): string {
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
