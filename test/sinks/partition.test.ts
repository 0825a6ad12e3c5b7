import { join, resolve, sep } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { Partitioner, safeLevel } from '../../src/sinks/files/partition.ts';

const HOSTILE = [
  '../../x',
  '..',
  '.',
  '/etc/passwd',
  '\\\\server\\share',
  'a\u0000b',
  'CON',
  'con',
  'nul.txt',
  'a.',
  '~',
  '%2e%2e',
  '_open',
  '_manifest.jsonl',
  'x.ndjson',
  'a\r\nb',
  '\u001b[31m',
  'x'.repeat(10_240),
  'é'.repeat(10_240),
  '\ud800',
];

function check(text: string): void {
  const level = safeLevel(text);
  expect(level).toMatch(/^(?:__HIVE_DEFAULT_PARTITION__|[a-z0-9%-][A-Fa-z0-9._%~-]*)$/);
  expect(Buffer.byteLength(`type=${level}`)).toBeLessThanOrEqual(255);
  expect(level).not.toMatch(/\.$|\.ndjson|^(?:con|nul|aux|prn)(?:\.|$)/);
  expect(join('/root', level).split(sep)).toEqual(['', 'root', level]);
}

describe('safeLevel', () => {
  it('fault 27: makes one harmless level of any text', () => {
    for (const text of HOSTILE) check(text);
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 400 }), check));
  });

  it('tells different texts apart, on case-insensitive file systems too', () => {
    const text = fc
      .string({ unit: 'binary', maxLength: 200 })
      .filter((value) => value !== '' && value.isWellFormed());
    fc.assert(
      fc.property(text, text, (one, other) => {
        fc.pre(one !== other);
        expect(safeLevel(one).toLowerCase()).not.toBe(safeLevel(other).toLowerCase());
      }),
    );
    expect(safeLevel('Team').toLowerCase()).not.toBe(safeLevel('team'));
    expect(safeLevel(`${'x'.repeat(200)}1`)).not.toBe(safeLevel(`${'x'.repeat(200)}2`));
  });

  it('leaves ordinary values as they are', () => {
    expect(safeLevel('daily.data.meal.created')).toBe('daily.data.meal.created');
    expect(safeLevel('3fa85f64-5717-4562-b3fc-2c963f66afa6')).toBe('3fa85f64-5717-4562-b3fc-2c963f66afa6');
    expect([safeLevel(null), safeLevel('')]).toEqual(Array(2).fill('__HIVE_DEFAULT_PARTITION__'));
  });
});

it('fault 27: no destination, type or team leads out of the archive', () => {
  const partitioner = new Partitioner(['date', 'hour', 'type', 'team']);
  for (const text of HOSTILE) {
    const folder = partitioner.folderOf(contractEvent(1, { type: text, team: text }), text);
    expect(folder.split('/')).toHaveLength(5);
    expect(resolve('/root', folder).startsWith('/root/')).toBe(true);
    expect(folder.startsWith('_open')).toBe(false);
  }
});
