import type { Command } from 'commander';
import { code, entry, GENERATED, page, wrap } from './markdown.ts';
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

/** An option of as many commands is described once. */
const MANY = 5;

/** Every command with its arguments and options. */
export function commandPage(program: Command): string {
  const nodes = [...nodesOf(commandTree(program))];
  const shared = [...Map.groupBy(nodes.flatMap(optionsOf), ({ text }) => text).values()]
    .filter(({ length }) => length >= MANY)
    .flatMap(([first]) => first ?? [])
    .filter(({ flags }, at, all) => all.findIndex((one) => one.flags === flags) === at);
  return page(
    '# Commands',
    `${GENERATED} \`millrace COMMAND --help\` has examples.`,
    '## Options of many commands',
    shared.map(({ text }) => text).join('\n'),
    ...nodes.map((node) => section(node, new Set(shared.map(({ text }) => text)))),
    '## Environment',
    'Variables that are no key of the config; those of keys are in [config.yaml](config.yaml).',
    Object.entries(ENVIRONMENT)
      .map(([name, what]) => entry(code(name), what))
      .join('\n'),
  );
}

function* nodesOf(node: CommandNode): Generator<CommandNode> {
  // `help` is commander's own, and says of itself all there is.
  if (node.path.at(-1) === 'help') return;
  yield node;
  for (const child of node.commands) yield* nodesOf(child);
}

function optionsOf({ options }: CommandNode): { readonly flags: string; readonly text: string }[] {
  return options
    .filter(({ flags }) => !flags.includes('--help'))
    .map(({ flags, fallback, description: what }) => {
      const text = entry(code(flags), fallback === null ? what : `${what} (default ${code(fallback)})`);
      return { flags, text };
    });
}

/** @param shared texts of options that stand at the top of the page */
function section(node: CommandNode, shared: ReadonlySet<string>): string {
  const { path, description, usage, arguments: given } = node;
  const [own, others] = [false, true].map((are) =>
    optionsOf(node).filter(({ text }) => shared.has(text) === are),
  );
  const entries = [
    ...given.map((one) => entry(code(one.usage), one.description)),
    ...(own ?? []).map(({ text }) => text),
  ];
  const also = (others ?? []).map(({ flags }) => code(flags)).join(', ');
  return [
    `${path.length > 1 ? '###' : '##'} ${['millrace', ...path].join(' ')}`,
    wrap(`${code(usage)}: ${description}`),
    ...(entries.length === 0 ? [] : [entries.join('\n')]),
    ...(also === '' ? [] : [wrap(`Also ${also}.`)]),
  ].join('\n\n');
}
