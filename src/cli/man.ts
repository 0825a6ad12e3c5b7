import type { Command } from 'commander';
import { EXIT_ROWS } from '../config/reference.ts';
import { ENVIRONMENT } from './environment.ts';
import { type CommandNode, commandTree, walk } from './tree.ts';

/** The manual page millrace(1), in the macros of man(7): every command and its options, as their help has them. */
export function manualPage(program: Command): string {
  const root = commandTree(program);
  const commands = [...walk(root)].filter(
    ({ path, options, commands: below }) =>
      path.length > 0 &&
      path.at(-1) !== 'help' &&
      (below.length === 0 || options.some(({ long }) => long !== '--help')),
  );
  return [
    `.TH MILLRACE 1 "" "millrace ${program.version() ?? ''}" "User Commands"`,
    section('NAME', [`millrace ${MINUS} ${lower(plain(root.description.replace(/\.$/, '')))}`]),
    section('SYNOPSIS', ['.B millrace', plain('[options] [command]')]),
    section('DESCRIPTION', [
      plain('Results go to stdout, progress and logs to stderr. Each command has examples in its'),
      '.BR \\-\\-help .',
      plain('With --json results are JSON, and so is the error on stderr with which a command ends.'),
    ]),
    section('COMMANDS', commands.flatMap(commandLines)),
    section(
      'EXIT STATUS',
      Object.values(EXIT_ROWS).flatMap(([code, what]) => tagged(`.B ${code}`, what)),
    ),
    section(
      'ENVIRONMENT',
      Object.entries(ENVIRONMENT).flatMap(([name, what]) => tagged(`.B ${name}`, what)),
    ),
    section('FILES', [
      ...tagged('.I config/millrace.yaml', 'the config of commands that are given no other'),
      ...tagged('.I .env', 'variables that the environment does not set'),
    ]),
    '',
  ].join('\n');
}

const MINUS = String.raw`\-`;

function commandLines({ path, usage, description, options }: CommandNode): string[] {
  const rest = usage.slice(['millrace', ...path].join(' ').length);
  return [
    `.SS millrace ${plain(path.join(' '))}`,
    plain(rest.trim()),
    '.PP',
    plain(`${description.charAt(0).toUpperCase()}${description.slice(1)}.`),
    ...options
      .filter(({ long }) => long !== '--help')
      .flatMap(({ flags, description: what, fallback }) =>
        tagged(`.B ${plain(flags)}`, fallback === null ? what : `${what} (default: ${fallback})`),
      ),
  ];
}

function section(title: string, lines: readonly string[]): string {
  return [`.SH ${title}`, ...lines].join('\n');
}

function tagged(tag: string, text: string): string[] {
  return ['.TP', tag, plain(text)];
}

/** Text in which nothing is a request or an escape of troff; a hyphen of an option stays one that can be copied. */
function plain(text: string): string {
  const escaped = text
    .replaceAll('\\', String.raw`\e`)
    .replaceAll('-', MINUS)
    .replaceAll('\n', ' ');
  return /^[.']/.test(escaped) ? String.raw`\&${escaped}` : escaped;
}

function lower(text: string): string {
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`;
}
