/** Begins an example for a shell. */
const EXAMPLE = /^ +(?:[A-Z_]+=|(?:millrace|source|psql|duckdb|bq|kubectl|docker|curl|cat|zcat|node|npm)\b)/;
/** An example with a comment: two or more spaces between them. */
const COMMENTED = /^( +\S.*?\S)( {2,})(\S.*)$/;

/**
 * Wraps help to the width of a terminal. A comment of an example begins with `#`, and stands above an example that is too wide
 * with it. A long example continues with a backslash, so that a shell still reads it. The lines of commander are wrapped already.
 */
export function wrapHelp(text: string, width: number): string {
  const out: string[] = [];
  let block: string[] = [];
  const flush = (): void => {
    out.push(...(block.some((line) => line.length > width) ? wrapBlock(block, width) : block));
    block = [];
  };
  for (const raw of text.split('\n')) {
    const line = EXAMPLE.test(raw) ? raw.replace(COMMENTED, '$1$2# $3') : raw;
    const [first] = block;
    if (first === undefined || !continues(line, first)) flush();
    block.push(line);
  }
  flush();
  return out.join('\n');
}

/** Whether a line belongs to the paragraph or list item that begins with `first`. */
function continues(line: string, first: string): boolean {
  if (line.trim() === '' || first.trim() === '') return false;
  return first.startsWith('  - ') ? /^ {4}\S/.test(line) : !/^\s/.test(first) && !/^\s/.test(line);
}

function wrapBlock(lines: readonly string[], width: number): string[] {
  const [first = ''] = lines;
  if (EXAMPLE.test(first)) return wrapExample(first, width);
  const [indent = ''] = /^ *(?:- )?/.exec(first) ?? [];
  const text = lines.map((line) => line.trim()).join(' ');
  return wrapText(text.slice(indent.trim().length), indent, ' '.repeat(indent.length), width);
}

function wrapExample(line: string, width: number): string[] {
  const [, command = line, , comment] = COMMENTED.exec(line) ?? [];
  const above = comment === undefined ? [] : wrapText(comment, '  ', '  # ', width);
  return [...above, ...wrapCommand(command, width)];
}

/** Breaks a command at spaces outside of quotes. */
function wrapCommand(command: string, width: number): string[] {
  if (command.length <= width) return [command];
  const words = command.match(/(?:'[^']*'|"[^"]*"|\S)+/g) ?? [];
  const lines = wrapText(words, '  ', '    ', width - 2);
  return lines.map((line, index) => (index < lines.length - 1 ? `${line} \\` : line));
}

/** @param text or its words, where these can contain spaces */
function wrapText(text: string | readonly string[], first: string, rest: string, width: number): string[] {
  const words = typeof text === 'string' ? text.trim().split(/\s+/) : text;
  const lines: string[] = [];
  let line = first;
  let isEmpty = true;
  for (const word of words) {
    if (!isEmpty && line.length + 1 + word.length > width) {
      lines.push(line);
      line = rest + word;
    } else line += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  return [...lines, line];
}
