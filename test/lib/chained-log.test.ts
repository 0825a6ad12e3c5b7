import { hash } from 'node:crypto';
import { appendFileSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ChainedLog } from '../../src/lib/chained-log.ts';
import { verifyChain } from '../../src/lib/verify-chain.ts';
import { temporaryFolder } from '../support/folders.ts';

const LARGE = { maxBytes: 1 << 20, keep: 3 };

async function written(
  lines: number,
  limits = LARGE,
): Promise<{ folder: string; file: string; log: ChainedLog }> {
  const folder = await temporaryFolder();
  const log = new ChainedLog({ folder, name: 'made-up', ...limits });
  for (let n = 1; n <= lines; n += 1) await log.append([{ what: `made-up ${n}` }]);
  return { folder, file: join(folder, 'made-up.jsonl'), log };
}

const linesOf = (file: string): string[] => readFileSync(file, 'utf8').split('\n').slice(0, -1);
const problemsOf = async (folder: string): Promise<string> =>
  (await verifyChain(folder, 'made-up')).problems.join('\n');

test('each line has the hash of the one before it, and only the owner can read the file', async () => {
  const { folder, file } = await written(3);
  const lines = linesOf(file);
  expect(lines).toHaveLength(3);
  for (const [index, line] of lines.entries()) {
    const { n, what, prev } = JSON.parse(line) as Record<string, unknown>;
    const before = lines[index - 1] ?? '';
    expect([n, what, prev]).toEqual([index + 1, `made-up ${index + 1}`, hash('sha256', before)]);
  }
  for (const name of readdirSync(folder))
    expect([name, statSync(join(folder, name)).mode & 0o777]).toEqual([name, 0o600]);
  expect(await verifyChain(folder, 'made-up')).toEqual({
    lines: 3,
    first: 1,
    head: { n: 3, hash: hash('sha256', lines[2] ?? '') },
    problems: [],
  });
});

test('a line that was changed, removed, added or moved is found wherever it stands, the last one too', async () => {
  const { folder, file } = await written(5);
  const lines = linesOf(file);
  const change = (at: number): string[] => lines.with(at, String(lines[at]).replace('made-up', 'altered'));
  const cases: [what: string, lines: string[], said: string][] = [
    ...[0, 2, 4].map((at): [string, string[], string] => [`changed ${at}`, change(at), `line ${at + 1}`]),
    ['first removed', lines.slice(1), 'lines 1 to 1 are missing'],
    ['one removed', lines.toSpliced(2, 1), 'line 4 follows line 2'],
    ['last two removed', lines.slice(0, 3), 'lines 4 to 5 are missing at the end'],
    ['all removed', [], 'lines 1 to 5 are missing at the end'],
    ['two swapped', lines.with(1, String(lines[2])).with(2, String(lines[1])), 'line 3 follows line 1'],
    ['one twice', lines.toSpliced(2, 0, String(lines[1])), 'line 2 follows line 2'],
    ['no line', lines.with(3, 'what'), 'made-up.jsonl:4: not a line of this log'],
  ];
  for (const [what, changed, said] of cases) {
    writeFileSync(file, changed.map((line) => `${line}\n`).join(''));
    expect([what, await problemsOf(folder)]).toEqual([what, expect.stringContaining(said)]);
  }
  writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
  expect(await problemsOf(folder)).toBe('');
});

test('what was cut off stays missing when the log continues', async () => {
  const { folder, file, log } = await written(4);
  writeFileSync(file, `${linesOf(file).slice(0, 2).join('\n')}\n`);
  await log.append([{ what: 'later' }]);
  expect(await problemsOf(folder)).toContain('line 5 follows line 2');
});

test('a hash noted elsewhere shows a log that was made again', async () => {
  const { folder, file } = await written(3);
  const { head } = await verifyChain(folder, 'made-up');
  expect((await verifyChain(folder, 'made-up', { head: head.hash })).problems).toEqual([]);
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
  await new ChainedLog({ folder, name: 'made-up', ...LARGE }).append([{ what: 'forged' }]);
  expect(linesOf(file)).toHaveLength(1);
  expect((await verifyChain(folder, 'made-up')).problems).toEqual([]);
  expect((await verifyChain(folder, 'made-up', { head: head.hash })).problems).toEqual([
    `no line has the hash ${head.hash}`,
  ]);
});

test('a line that a crash has cut short is written over, and one missing from the head is no difference', async () => {
  const { folder, file, log } = await written(2);
  const before = readFileSync(join(folder, 'made-up.head'));
  await log.append([{ what: 'made-up 3' }]);
  // As if the process had died between the line and the head, and in the next line.
  writeFileSync(join(folder, 'made-up.head'), before);
  appendFileSync(file, '{"n":4,"at":"20');
  expect(await problemsOf(folder)).toBe('');
  await log.append([{ what: 'made-up 4' }]);
  expect(linesOf(file).map((line) => (JSON.parse(line) as { what: string }).what)).toEqual(
    [1, 2, 3, 4].map((n) => `made-up ${n}`),
  );
  expect(await problemsOf(folder)).toBe('');
});

test('it grows no further than its limits; the chain continues over files, and what was cleared away is said', async () => {
  const limits = { maxBytes: 2000, keep: 2 };
  const { folder, log } = await written(100, limits);
  const names = readdirSync(folder).filter((name) => name.endsWith('.jsonl'));
  expect(names).toHaveLength(3);
  const bytes = names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  expect(bytes).toBeLessThan(3 * 2500);
  const report = await verifyChain(folder, 'made-up');
  expect(report.problems).toEqual([]);
  expect(report.first).toBeGreaterThan(1);
  // One more removed file is noticed.
  const oldest = names.toSorted()[0] ?? '';
  const kept = readFileSync(join(folder, oldest));
  rmSync(join(folder, oldest));
  expect(await problemsOf(folder)).toMatch(/^lines 1 to \d+ are missing$/);
  writeFileSync(join(folder, oldest), kept);
  await log.append([{ what: 'continues' }]);
  expect(await problemsOf(folder)).toBe('');
});

test.each(['{}', 'what'])(
  'a full file whose last line is damaged (%s) keeps its place and its lines',
  async (last) => {
    const limits = { maxBytes: 2000, keep: 2 };
    const { folder, file, log } = await written(14, limits);
    const before = (await verifyChain(folder, 'made-up')).lines;
    const full = Math.max(0, limits.maxBytes - statSync(file).size);
    const lines = [...linesOf(file).slice(0, -1), last.padEnd(full + 200)];
    writeFileSync(file, `${lines.join('\n')}\n`);
    await log.append([{ what: 'later' }]);
    await log.append([{ what: 'later' }]);
    const rotated = readdirSync(folder).filter((name) => /^made-up\.\d/.test(name));
    expect(rotated.toSorted().at(-1)).toBe('made-up.000000000014.jsonl');
    const { lines: after, problems } = await verifyChain(folder, 'made-up');
    expect(after).toBeGreaterThanOrEqual(before);
    expect(problems.length).toBeGreaterThan(0);
  },
);

test('several writers of one log make one chain', async () => {
  const { folder, log } = await written(1);
  const other = new ChainedLog({ folder, name: 'made-up', ...LARGE });
  const both = [log, other].flatMap((writer) =>
    Array.from({ length: 20 }, (_, n) => writer.append([{ first: n }, { second: n }])),
  );
  await Promise.all(both);
  expect(await verifyChain(folder, 'made-up')).toMatchObject({ lines: 81, problems: [] });
});
