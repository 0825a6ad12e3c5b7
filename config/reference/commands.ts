import type { Command } from 'commander';
import { markdownTable } from './markdown.ts';
import { ENVIRONMENT } from './environment.ts';

/** One command as its help shows it: `--help` and `help` included, hidden things not. */
export interface CommandNode {
  /** Without the program's name: `['quarantine', 'list']`; empty for the program itself. */
  readonly path: readonly string[];
  readonly description: string;
  readonly usage: string;
  /** `fallback` is what holds when one is left out; null when nothing does, or the description says it. */
  readonly options: readonly {
    readonly flags: string;
    readonly description: string;
    readonly fallback: string | null;
  }[];
  /** `usage` as help shows it: `<path>`, `[keys...]`. */
  readonly arguments: readonly { readonly usage: string; readonly description: string }[];
  readonly commands: readonly CommandNode[];
}

/** The tree below a command. */
export function commandTree(command: Command, path: readonly string[] = []): CommandNode {
  const help = command.createHelp();
  return {
    path,
    description: help.commandDescription(command),
    usage: help.commandUsage(command),
    options: help.visibleOptions(command).map(({ flags, description, ...option }) => {
      const fallback = fallbackOf(option.defaultValueDescription ?? option.defaultValue);
      return { flags, description, fallback };
    }),
    arguments: command.registeredArguments.map((argument) => {
      const name = argument.variadic ? `${argument.name()}...` : argument.name();
      return { usage: argument.required ? `<${name}>` : `[${name}]`, description: argument.description };
    }),
    commands: help.visibleCommands(command).map((child) => commandTree(child, [...path, child.name()])),
  };
}

function fallbackOf(value: unknown): string | null {
  if (typeof value === 'number' || (typeof value === 'string' && value !== '')) return String(value);
  return null;
}

/** Every command with its arguments, options and examples, as Markdown. */
export function commandReference(program: Command): string {
  return [...sections(program, [], '')].join('\n\n');
}

/** Variables that are no key of the config, as a Markdown table. */
export function environmentReference(): string {
  const rows = Object.entries(ENVIRONMENT).map(([name, what]) => [`\`${name}\``, what]);
  return markdownTable(['Variable', 'What it does'], rows);
}

function* sections(command: Command, path: readonly string[], said: string): Generator<string> {
  // `help` is commander's own, and says of itself all there is.
  if (command.name() === 'help') return;
  const notes = notesOf(command);
  yield section(commandTree(command, path), notes === said ? '' : notes);
  for (const child of command.commands) yield* sections(child, [...path, child.name()], notes);
}

/** @param notes empty when the command above has said them already */
function section(node: CommandNode, notes: string): string {
  const options = node.options.filter(({ flags }) => !flags.includes('--help'));
  return [
    `${node.path.length > 1 ? '###' : '##'} ${['millrace', ...node.path].join(' ')}`,
    sentence(node.description),
    `\`\`\`\n${node.usage}\n\`\`\``,
    ...table(
      ['Argument', 'What it is'],
      node.arguments.map(({ usage, description }) => [`\`${usage}\``, description]),
    ),
    ...table(
      ['Option', 'Default', 'What it does'],
      options.map(({ flags, fallback, description }) => {
        return [`\`${flags}\``, fallback === null ? '' : `\`${fallback}\``, description];
      }),
    ),
    ...(notes === '' ? [] : [`\`\`\`\n${notes}\n\`\`\``]),
  ].join('\n\n');
}

/** What help says below the options: the examples and what follows them. */
function notesOf(command: Command): string {
  let text = '';
  const { writeOut } = command.configureOutput();
  command.configureOutput({ writeOut: (part) => (text += part) });
  command.outputHelp();
  if (writeOut !== undefined) command.configureOutput({ writeOut });
  return text.slice(command.helpInformation().length).trim();
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
}

/** Nothing when it has no rows. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return rows.length === 0 ? [] : [markdownTable(head, rows)];
}
