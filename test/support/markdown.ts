import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './millrace.ts';

/** One fenced block of a Markdown file. */
export interface Block {
  /** What stands behind the fence: `sh run event-hubs` → `['sh', 'run', 'event-hubs']`. */
  readonly info: readonly string[];
  /** Without the indentation of the fence. */
  readonly text: string;
}

/** The fenced blocks of a file, in order. @param file relative to the project's folder */
export function blocksOf(file: string): Block[] {
  const blocks: Block[] = [];
  let open: { info: string[]; indent: string; lines: string[] } | null = null;
  for (const line of readFileSync(join(ROOT, file), 'utf8').split('\n')) {
    const fence = /^(\s*)```(.*)$/.exec(line);
    if (open === null) {
      if (fence !== null)
        open = { info: (fence[2] ?? '').trim().split(/\s+/), indent: fence[1] ?? '', lines: [] };
    } else if (fence !== null && fence[2] === '') {
      blocks.push({ info: open.info, text: open.lines.join('\n') });
      open = null;
    } else open.lines.push(line.startsWith(open.indent) ? line.slice(open.indent.length) : line);
  }
  return blocks;
}

/** The anchors of a file's headings, as code hosts make them. */
export function anchorsOf(file: string): Set<string> {
  const headings = readFileSync(join(ROOT, file), 'utf8').matchAll(/^#+ (.+)$/gm);
  return new Set(
    Array.from(headings, ([, text = '']) =>
      text
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** Targets of a file's links to other places in the project: `../LICENSE`, `#sizing`, `a.md#b`. */
export function localLinksOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), 'utf8').replaceAll(/^\s*```[^]*?^\s*```$/gm, '');
  return Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, target = '']) => target).filter(
    (target) => !/^[a-z]+:/.test(target),
  );
}
