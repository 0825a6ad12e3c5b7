import { expect, test } from 'vitest';
import { seededRandom } from '../support/random.ts';
import { fatesAt } from './choose.ts';
import { Disk } from './disk.ts';
import type { Op } from './log.ts';
import { treeOf } from './tree.ts';

const make = (fd: number, path: string): Op => ({ kind: 'open', fd, path, made: true, emptied: false });
const folder = (fd: number, path: string): Op => ({ kind: 'open', fd, path, made: false, emptied: false });
const write = (fd: number, offset: number, text: string): Op => ({
  kind: 'write',
  fd,
  offset,
  data: Buffer.from(text),
});
const sync = (fd: number): Op[] => [
  { kind: 'sync begins', fd },
  { kind: 'sync', fd, since: Infinity },
];

/** Every state that the model finds after these operations, each as its names and contents. */
function statesAfter(...ops: readonly (Op | readonly Op[])[]): string[] {
  const disk = new Disk();
  for (const [at, op] of ops.flat().entries()) disk.apply(op, at);
  const states = new Set<string>();
  let draws = 0;
  for (const fate of fatesAt(disk, seededRandom(1))) {
    const { files } = treeOf(disk, fate);
    states.add(files.map(({ path, bytes }) => `${path}=${shown(bytes)}`).join(' '));
    if ((draws += 1) === 600) break;
  }
  return [...states].sort();
}

const page = (letter: string): string => letter.repeat(4096);

/** Each letter once, and zeros as a dot. */
function shown(bytes: Buffer): string {
  return bytes
    .toString()
    .replaceAll(/\0+/g, '.')
    .replaceAll(/(.)\1+/g, '$1');
}

test('a sync of a file keeps what is in it, and not its name', () => {
  expect(statesAfter(make(3, 'f'), write(3, 0, 'a'), sync(3))).toEqual(['', 'f=a']);
  expect(statesAfter(make(3, 'f'), sync(3), folder(4, ''), sync(4), write(3, 0, 'a'))).toEqual([
    'f=',
    'f=.',
    'f=a',
  ]);
});

test('a sync keeps what was written before it began, not what was written meanwhile', () => {
  const meanwhile: Op[] = [
    { kind: 'sync begins', fd: 3 },
    write(3, 1, 'b'),
    { kind: 'sync', fd: 3, since: 5 },
  ];
  const states = statesAfter(make(3, 'f'), folder(4, ''), sync(4), write(3, 0, 'a'), meanwhile);
  expect(states).toEqual(['f=a', 'f=a.', 'f=ab']);
});

test('sectors of a write come to the disk one without the other, and the size without either', () => {
  const states = statesAfter(make(3, 'f'), folder(4, ''), sync(4), write(3, 0, page('a') + page('b')));
  expect(states).toEqual(expect.arrayContaining(['f=', 'f=.', 'f=.b', 'f=a.', 'f=ab', 'f=a']));
  const over = statesAfter(
    make(3, 'f'),
    folder(4, ''),
    sync(4),
    write(3, 0, page('a')),
    sync(3),
    write(3, 0, page('b')),
  );
  expect(over).toEqual(expect.arrayContaining(['f=a', 'f=b', 'f=ab', 'f=ba']));
});

test('what a truncation has cut off is there only when the truncation is lost', () => {
  const before = [make(3, 'f'), folder(4, ''), sync(4), write(3, 0, 'old'), sync(3)];
  const cut: Op = { kind: 'truncate', fd: 3, size: 0 };
  expect(statesAfter(...before, cut)).toEqual(['f=', 'f=old']);
  expect(statesAfter(...before, cut, write(3, 0, 'n'))).toEqual(['f=', 'f=.', 'f=n', 'f=old']);
});

test('a rename is there or not, as a whole; a sync of the folder makes it durable', () => {
  const ops = [make(3, 't'), write(3, 0, 'a'), sync(3), { kind: 'rename', from: 't', to: 'f' } as Op];
  expect(statesAfter(...ops)).toEqual(['', 'f=a', 't=a']);
  expect(statesAfter(...ops, folder(4, ''), sync(4))).toEqual(['f=a']);
  const over = [make(5, 'f'), write(5, 0, 'b'), sync(5), folder(4, ''), sync(4), ...ops];
  expect(statesAfter(...over)).toEqual(['f=a', 'f=b', 'f=b t=a']);
});

test('names are lost independent of each other, and all below a folder with its own', () => {
  expect(statesAfter(make(3, 'f'), make(4, 'g'))).toEqual(['', 'f=', 'f= g=', 'g=']);
  const below = [{ kind: 'mkdir', path: 'd' } as Op, make(3, 'd/f'), folder(4, 'd'), sync(4)];
  expect(statesAfter(...below)).toEqual(['', 'd/f=']);
  expect(statesAfter(...below, folder(5, ''), sync(5))).toEqual(['d/f=']);
  expect(statesAfter(...below, folder(5, ''), sync(5), { kind: 'unlink', path: 'd/f' })).toEqual([
    '',
    'd/f=',
  ]);
});
