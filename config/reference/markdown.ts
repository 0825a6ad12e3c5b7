const WIDTH = 118;

/** A list entry: the head, then the text, in lines of at most 118 characters; the next lines are indented. */
export function entry(head: string, text: string): string {
  return wrap(`- ${head}${text === '' ? '' : `: ${text}`}`, '  ');
}

/** Breaks a text at its spaces, but for those inside of code. */
export function wrap(text: string, indent = ''): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.match(/(?:`[^`]*`|[^\s`])+/g) ?? []) {
    if (line !== '' && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = indent + word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join('\n');
}

/** A table without padding; a `|` in a cell is no border. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`)
    .join('\n');
}

export function code(text: string): string {
  return `\`${text}\``;
}

/** Parts of a page, an empty line between two. */
export function page(...parts: readonly string[]): string {
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

/** The first line of each generated file. */
export const GENERATED = 'Generated from the code by `npm run docs`.';
