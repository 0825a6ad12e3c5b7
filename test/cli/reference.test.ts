import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { ENVIRONMENT } from '../../config/reference/environment.ts';
import { commandPage, commandTree } from '../../config/reference/commands.ts';
import { configKeys } from '../../src/config/keys.ts';
import { millrace, ROOT } from '../support/millrace.ts';
import { program, walk } from './run.ts';

/** The text of every source file. */
const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => ({ name, text: readFileSync(join(ROOT, 'src', name), 'utf8') }));

test('every command, argument and option has words, and stands in the reference', async () => {
  const root = await program();
  const reference = commandPage(root);
  for (const node of walk(commandTree(root))) {
    const name = ['millrace', ...node.path].join(' ');
    if (node.path.at(-1) === 'help') continue;
    expect(node.description, name).not.toBe('');
    expect(reference).toMatch(new RegExp(`^##+ ${name}$`, 'm'));
    for (const { flags, description } of node.options) {
      expect(description, `${name} ${flags}`).not.toBe('');
      if (!flags.includes('--help')) expect(reference).toContain(`\`${flags}\``);
    }
    for (const { usage, description } of node.arguments) expect(description, `${name} ${usage}`).not.toBe('');
  }
});

test('every variable that the program reads is in one of the two references', () => {
  // The one that stray.ts gives as an example of a slip.
  const slip = 'MILLRACE_SERVER_PROT';
  const known = new Set([slip, ...Object.keys(ENVIRONMENT), ...configKeys().scalars.map(({ env }) => env)]);
  const read = sources.flatMap(({ name, text }) =>
    Array.from(
      text.matchAll(/(?:\benv(?:\.|\[')|\b(?=MILLRACE_))([A-Z]+_[A-Z_]*[A-Z])/g),
      ([, variable = '']) => ({ name, variable }),
    ),
  );
  expect(read.length).toBeGreaterThan(3);
  expect(read.filter(({ variable }) => !known.has(variable))).toEqual([]);
});

test('nothing is ever coloured, so that NO_COLOR is honoured', () => {
  const coloured = sources.filter(
    ({ name, text }) => name.startsWith('cli') && /\\(?:u001b|x1b|033)\[[0-9;]*m/i.test(text),
  );
  expect(coloured.map(({ name }) => name)).toEqual([]);
});

const names = ({ commands }: Command): string[] => commands.map((command) => command.name());

test('a command loads no other command; the help and the version load none, and name all', async () => {
  expect(names(await program('status'))).toEqual(['status']);
  const all = await program();
  for (const only of ['--version', '--help', '', 'statsu']) {
    const { commands } = await program(only);
    expect(commands.map((command) => command.name())).toEqual(names(all));
    expect(
      commands.flatMap(({ options, registeredArguments }) => [options, registeredArguments]).flat(),
    ).toEqual([]);
  }
});

test('the help shows the fifteen commands that people use, and names the others', async () => {
  const { stdout } = await millrace(['--help']);
  expect(stdout.match(/^ {2}[a-z-]+ {2,}\w/gm)).toHaveLength(15);
  const [, more = ''] = /More commands: ([^]*?)\n\n/.exec(stdout) ?? [];
  expect(more.split(/,\s+/)).toEqual(
    expect.arrayContaining(['audit', 'drain', 'fixture', 'keys', 'receipt', 'sandbox', 'types']),
  );
  expect((await millrace(['drian'])).stderr).toContain('Did you mean drain?');
  expect((await millrace(['help', 'audit'])).stdout).toContain('Usage: millrace audit');
});
