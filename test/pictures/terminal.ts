import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { COLUMNS, freePorts, run, serve, stop, type Places } from './program.ts';

/** Begins a terminal's codes for colours and bold, which end with `m`. */
const ESCAPE = '\u001B[';
const [CHARACTER, LINE, MARGIN] = [7.8, 18, 16];
/** Colours on a dark ground, by the number that a terminal gets. */
const COLOURS: Readonly<Record<string, string>> = {
  31: '#ff7b72',
  32: '#7ee787',
  33: '#e3b341',
  34: '#79c0ff',
  35: '#d2a8ff',
  36: '#76e3ea',
  90: '#8b949e',
};

/** From nothing to the first events, as a terminal shows it: commands, and what they print. */
export async function terminalPicture({ main, folder, docs }: Places): Promise<void> {
  const own = join(folder, 'hooks');
  mkdirSync(own);
  const lines: string[] = [];
  const show = async (args: readonly string[]): Promise<void> => {
    lines.push(prompt(args), ...linesOf((await run(main, own, args)).replaceAll(own, '/srv/hooks')), '');
  };
  await show(['init', '--yes']);
  // The usual ports may be taken here; the picture shows those.
  const ports = await freePorts();
  const config = join(own, 'config/millrace.yaml');
  writeFileSync(
    config,
    `${readFileSync(config, 'utf8')}server: { port: ${ports.server} }\nadmin: { port: ${ports.admin} }\n`,
  );
  const serving = await serve(main, own);
  try {
    lines.push(`${prompt(['serve'])} &`, ...linesOf(serving.shown()), '');
    await show(['send', '--count', '3']);
    await show(['status', '--wait']);
    await show(['tail', '--since', '1h', '--count', '3']);
  } finally {
    await stop(serving);
  }
  const shown = lines.map((line) =>
    line.replaceAll(String(ports.server), '8080').replaceAll(String(ports.admin), '9090'),
  );
  writeFileSync(join(docs, 'terminal.svg'), svg(shown));
}

function linesOf(printed: string): string[] {
  return printed.trimEnd().split(/\r?\n/);
}

function prompt(args: readonly string[]): string {
  return `\u001b[32m$\u001b[39m \u001b[1mmillrace ${args.join(' ')}\u001b[22m`;
}

function svg(lines: readonly string[]): string {
  while (lines.at(-1) === '') lines = lines.slice(0, -1);
  const width = COLUMNS * CHARACTER + 2 * MARGIN;
  const height = lines.length * LINE + 2 * MARGIN;
  const rows = lines.map((line, row) => {
    const y = MARGIN + (row + 1) * LINE - 5;
    return `<text x="${MARGIN}" y="${y}">${spans(cut(line))}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="millrace in a terminal">
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" fill="#e6edf3">
${rows.join('\n')}
</g>
</svg>
`;
}

/** A line as wide as the picture, its codes kept. */
function cut(line: string): string {
  if (stripVTControlCharacters(line).length <= COLUMNS) return line;
  let left = COLUMNS - 1;
  const kept = partsOf(line).map(({ codes, text }) => {
    const shown = text.slice(0, left);
    left -= shown.length;
    return `${codes.length === 0 ? '' : `${ESCAPE}${codes.join(';')}m`}${shown}`;
  });
  return `${kept.join('')}…`;
}

/** The texts of a line, each with the codes in front of it. */
function partsOf(line: string): { readonly codes: readonly string[]; readonly text: string }[] {
  return line.split(ESCAPE).map((part, index) => {
    if (index === 0) return { codes: [], text: part };
    const end = part.indexOf('m');
    return { codes: part.slice(0, end).split(';'), text: part.slice(end + 1) };
  });
}

/** Text with a terminal's codes as SVG. */
function spans(line: string): string {
  let style: Style = { fill: '', weight: '' };
  return partsOf(line)
    .map(({ codes, text }) => {
      for (const code of codes) style = styleAfter(style, code);
      // SVG would join spaces.
      const safe = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll(' ', '\u00A0');
      const attributes = `${style.fill}${style.weight}`;
      return attributes === '' || text === '' ? safe : `<tspan${attributes}>${safe}</tspan>`;
    })
    .join('');
}

/** Attributes of SVG, each with a space in front, or nothing. */
interface Style {
  readonly fill: string;
  readonly weight: string;
}

function styleAfter(style: Style, code: string): Style {
  if (code === '' || code === '0') return { fill: '', weight: '' };
  if (code === '1') return { ...style, weight: ' font-weight="bold"' };
  if (code === '2') return { ...style, fill: ` fill="${COLOURS[90]}"` };
  if (code === '22') return { fill: style.fill.includes('#8b949e') ? '' : style.fill, weight: '' };
  if (code === '39') return { ...style, fill: '' };
  return code in COLOURS ? { ...style, fill: ` fill="${COLOURS[code]}"` } : style;
}
