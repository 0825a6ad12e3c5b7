/** What a shell takes. */
const EXAMPLE = /^ +(?:millrace|[A-Z_]+=|source|psql|duckdb|bq|kubectl|docker|curl|cat|zcat|node|npm)\b/;
/** Columns of a text beside which a comment stands: two spaces at least. */
const COMMENTED = /^( +\S.*?\S) {2,}(\S.*)$/;

/**
 * Help as it fits a terminal: sentences are broken anew, the comment of an example goes above it, and a long example is
 * continued with a backslash, so that it can still be copied. What commander has laid out fits already.
 */
export function fitHelp(text: string, width: number): string {
  const out: string[] = [];
  let open: string[] = [];
  const flush = (): void => {
    out.push(...(open.some((line) => line.length > width) ? fitTogether(open, width) : open));
    open = [];
  };
  for (const line of text.split('\n')) {
    const isFirst = open.length === 0 || !continues(line, open[0] ?? '');
    if (isFirst) flush();
    open.push(line);
  }
  flush();
  return out.join('\n');
}

/** Whether a line belongs to the paragraph or the item of a list that another began. */
function continues(line: string, first: string): boolean {
  if (line.trim() === '' || first.trim() === '') return false;
  return first.startsWith('  - ') ? /^ {4}\S/.test(line) : !/^\s/.test(first) && !/^\s/.test(line);
}

function fitTogether(lines: readonly string[], width: number): string[] {
  const [first = ''] = lines;
  if (EXAMPLE.test(first)) return fitExample(first, width);
  const [indent = ''] = /^ *(?:- )?/.exec(first) ?? [];
  const text = lines.map((line) => line.trim()).join(' ');
  return wrap(text.slice(indent.trim().length).trim(), indent, ' '.repeat(indent.length), width);
}

function fitExample(line: string, width: number): string[] {
  const [, command, comment] = COMMENTED.exec(line) ?? [line, line];
  const above = comment === undefined ? [] : wrap(`# ${comment}`, '  ', '  # ', width);
  return [...above, ...continued(command ?? line, width)];
}

/** Broken in front of an option, or else at a space that stands in no quotes. */
function continued(command: string, width: number): string[] {
  if (command.length <= width) return [command];
  const words = command.trim().match(/(?:'[^']*'|"[^"]*"|\S)+/g) ?? [];
  const lines: string[] = [];
  let line = ' ';
  for (const word of words) {
    if (line.trim() !== '' && line.length + word.length + 3 > width) {
      lines.push(`${line} \\`);
      line = '   ';
    }
    line += ` ${word}`;
  }
  return [...lines, line];
}

function wrap(text: string, first: string, rest: string, width: number): string[] {
  const lines: string[] = [];
  let line = first;
  for (const word of text.split(/\s+/)) {
    const isEmpty = line === first || line === rest;
    if (!isEmpty && line.length + 1 + word.length > width) {
      lines.push(line);
      line = rest + word;
    } else line += isEmpty ? word : ` ${word}`;
  }
  return [...lines, line];
}
