import { describe, expect, it } from 'vitest';
import {
  commandOf,
  endInstant,
  httpUrl,
  instant,
  number,
  type OptionsOf,
  readAs,
  readBy,
  repeated,
  required,
  special,
  textOr,
  wholeNumber,
} from '../../src/cli/options.ts';
import { parseDuration } from '../../src/lib/units.ts';

const NOON = Date.UTC(2026, 10, 21, 12);
const MIDNIGHT = Date.UTC(2026, 10, 21);

describe('numbers', () => {
  it.each(['0', '1', '65535'])('take %s', (text) => {
    expect(wholeNumber(0, 65_535)(text)).toBe(Number(text));
  });

  it.each(['', ' ', '-1', '65536', '1.5', 'x', 'NaN', 'Infinity', '9007199254740993'])(
    'refuse %j and say the range',
    (text) => {
      expect(() => wholeNumber(0, 65_535)(text)).toThrow('must be a whole number from 0 to 65535');
      expect(() => readAs('--port', text, wholeNumber(0, 65_535))).toThrow(`--port ${text}: must be`);
    },
  );

  it('that need not be whole have a range too', () => {
    expect(number(0, 1)('0.05')).toBe(0.05);
    expect(() => number(0, 1)('2')).toThrow('must be a number from 0 to 1');
    expect(() => wholeNumber(1)('0')).toThrow('must be a whole number of at least 1');
  });
});

describe('times', () => {
  it.each([
    ['2026-11-21', MIDNIGHT, MIDNIGHT + 86_400_000],
    ['2026-11-21T12:00:00Z', NOON, NOON],
    ['2026-11-21T13:00+01:00', NOON, NOON],
    ['2026-11-21T12:00', NOON, NOON],
  ])('%s is UTC without a zone, and a day at the end of a span is all of it', (text, begin, end) => {
    expect([instant(text), endInstant(text)]).toEqual([begin, end]);
  });

  it.each(['yesterday', '', '2026-13-01', '21.11.2026', '1795230902', '1969-01-01'])('%j is none', (text) => {
    expect(() => instant(text)).toThrow('must be a day or time');
  });
});

it('an address is one of http or https', () => {
  expect(httpUrl('https://a.example/x')).toBe('https://a.example/x');
  for (const text of ['ftp://a.example', 'nowhere', '']) expect(() => httpUrl(text)).toThrow('must be a URL');
});

it('an option is read as the line is taken apart; its default is shown as it is written', async () => {
  const options = {
    '--every <duration>': readBy(parseDuration, 'how often', '5s'),
    '--user-name <id>': repeated('who'),
    '--team <id>': textOr('all', 'whose'),
    '--rate-429 <share>': special<string>('how much', (option) => option.default('0')),
    '--out <file>': required('where to'),
    '--dry-run': 'nothing is done',
    '--no-reload': 'as it is',
  };
  const command = commandOf('x', options, 'Examples: none').exitOverride();
  const run = (...args: string[]) => command.action(() => undefined).parseAsync(args, { from: 'user' });
  await run('--user-name', 'a', '--user-name', 'b', '--out', 'c', '--dry-run');
  const expected: OptionsOf<typeof options> = {
    every: 5000,
    userName: ['a', 'b'],
    team: 'all',
    rate429: '0',
    out: 'c',
    dryRun: true,
    reload: true,
  };
  expect(command.opts()).toEqual(expected);
  expect(command.helpInformation()).toContain('(default: 5s)');
  await expect(run('--every', 'often')).rejects.toMatchObject({
    code: 'usage',
    detail: expect.stringMatching(/^--every often: /),
  });
});
