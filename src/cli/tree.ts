import type { Argument, Command, Option } from 'commander';

/** What may stand in a place of the command line: how a shell completes it. */
export type Value =
  | { readonly kind: 'file' }
  | { readonly kind: 'folder' }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'text' };

export interface OptionNode {
  /** `--config`. */
  readonly long: string;
  /** `-h`, or null. */
  readonly short: string | null;
  /** As help shows it: `--config <file>`. */
  readonly flags: string;
  readonly description: string;
  /** Null when it is a flag. */
  readonly value: Value | null;
  readonly repeatable: boolean;
  /** What holds when it is left out, in words; null when nothing does, or the description says it. */
  readonly fallback: string | null;
}

export interface ArgumentNode {
  /** As usage shows it: `<path>`, `[keys...]`. */
  readonly usage: string;
  readonly description: string;
  readonly value: Value;
}

/** One command as completion and reference see it. */
export interface CommandNode {
  /** Without the program's name: `['quarantine', 'list']`; empty for the program itself. */
  readonly path: readonly string[];
  readonly description: string;
  readonly usage: string;
  readonly options: readonly OptionNode[];
  readonly arguments: readonly ArgumentNode[];
  readonly commands: readonly CommandNode[];
}

/** The tree below a command, as its help shows it: implicit `--help` and `help` included, hidden things not. */
export function commandTree(command: Command, path: readonly string[] = []): CommandNode {
  const help = command.createHelp();
  return {
    path,
    description: help.commandDescription(command),
    usage: help.commandUsage(command),
    options: help.visibleOptions(command).map(optionNode),
    arguments: command.registeredArguments.map(argumentNode),
    commands: help.visibleCommands(command).map((child) => commandTree(child, [...path, child.name()])),
  };
}

/** The command and all below it, parents first. */
export function* walk(node: CommandNode): Generator<CommandNode> {
  yield node;
  for (const child of node.commands) yield* walk(child);
}

function optionNode(option: Option): OptionNode {
  const { flags, description, argChoices, required, optional, variadic } = option;
  const takesValue = required || optional;
  return {
    long: option.long ?? flags,
    short: option.short ?? null,
    flags,
    description,
    value: takesValue ? valueOf(/[<[]([^>\]]+)[>\]]/.exec(flags)?.[1] ?? '', argChoices) : null,
    repeatable: variadic || description.includes('may be repeated'),
    fallback: fallbackOf(option.defaultValueDescription ?? option.defaultValue),
  };
}

function argumentNode(argument: Argument): ArgumentNode {
  const name = argument.variadic ? `${argument.name()}...` : argument.name();
  return {
    usage: argument.required ? `<${name}>` : `[${name}]`,
    description: argument.description,
    value: valueOf(argument.name(), argument.argChoices),
  };
}

/** The placeholder's name says what goes there, so that nothing has to be said twice. */
function valueOf(placeholder: string, choices: readonly string[] | undefined): Value {
  if (choices !== undefined) return { kind: 'choice', choices };
  if (/^(dir|folder)\b/.test(placeholder)) return { kind: 'folder' };
  return { kind: /^(file|path)\b/.test(placeholder) ? 'file' : 'text' };
}

function fallbackOf(value: unknown): string | null {
  if (typeof value === 'number' || (typeof value === 'string' && value !== '')) return String(value);
  return null;
}
