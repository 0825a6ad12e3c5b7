import { walk, type CommandNode, type OptionNode, type Value } from '../tree.ts';

export function fishCompletion(root: CommandNode): string {
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
    ...node.commands.map((child) => `${here} -a ${child.path.at(-1)} -d '${quoted(child.description)}'`),
    ...(choices.length === 0 ? [] : [`${here} -a '${choices.join(' ')}'`]),
    ...(files ? [`${here} -F`] : []),
    ...node.options.map((option) => `${here} ${optionWords(option)}`),
  ];
}

function optionWords({ long, short, description, value }: OptionNode): string {
  const names = `${short === null ? '' : `-s ${short.slice(1)} `}-l ${long.slice(2)}`;
  return `${names}${value === null ? '' : ` ${valueWords(value)}`} -d '${quoted(description)}'`;
}

function valueWords(value: Value): string {
  if (value.kind === 'choice') return `-x -a '${value.choices.join(' ')}'`;
  if (value.kind === 'text') return '-x';
  return value.kind === 'folder' ? "-x -a '(__fish_complete_directories)'" : '-r -F';
}

const quoted = (text: string): string => text.replaceAll(/[\\']/g, String.raw`\$&`);
