import { Command, CommanderError } from 'commander';
import { EXIT, MillraceError } from '../core/errors.ts';
import { ownPackage } from '../lib/installed.ts';
import { nameThisProcess } from '../lib/lock-owner.ts';
import { visibleLines } from '../lib/visible.ts';
import { wantsJson, writeFailure, writeUsageFailure } from './failure.ts';
import { wrapHelp } from './wrap-help.ts';
import type { Io } from './io.ts';

type Load = () => Promise<(io: Io) => Command>;

/** Commands that people use most, in the groups of the help, each with its line there. Each is loaded by itself, so that it starts fast. */
const GROUPS: Readonly<Record<string, Readonly<Record<string, readonly [summary: string, load: Load]>>>> = {
  'Run:': {
    init: [
      'write a config, .env and what runs it',
      async () => (await import('./init/command.ts')).initCommand,
    ],
    serve: ['receive, keep and deliver events', async () => (await import('./serve.ts')).serveCommand],
    check: [
      'is the config valid, and what does it do',
      async () => (await import('./check/command.ts')).checkCommand,
    ],
  },
  'Inspect:': {
    status: [
      'journal, backlog of each sink, what is wrong',
      async () => (await import('./status.ts')).statusCommand,
    ],
    tail: ['show events as they come in', async () => (await import('./tail.ts')).tailCommand],
    console: ['open the console in a browser', async () => (await import('./console.ts')).consoleCommand],
    route: ['explain where an event type goes', async () => (await import('./route.ts')).routeCommand],
    quarantine: [
      'events that are not valid: list, retry, drop',
      async () => (await import('./set-aside.ts')).quarantineCommand,
    ],
    'dead-letters': [
      'events that a sink refused: list, retry, drop',
      async () => (await import('./set-aside.ts')).deadLettersCommand,
    ],
  },
  'Data:': {
    backfill: [
      'fetch history from the service',
      async () => (await import('./backfill/command.ts')).backfillCommand,
    ],
    replay: [
      'send an archive or the journal to sinks again',
      async () => (await import('./replay/command.ts')).replayCommand,
    ],
    export: ['make tables of an archive', async () => (await import('./export.ts')).exportCommand],
    erase: ['remove all data of a user', async () => (await import('./erase/command.ts')).eraseCommand],
  },
  'Develop:': {
    dev: ['run everything on this machine', async () => (await import('./dev/command.ts')).devCommand],
    send: ['send made-up signed events', async () => (await import('./send.ts')).sendCommand],
  },
};

/** The other commands; the help only names them. */
const MORE: Readonly<Record<string, Load>> = {
  archive: async () => (await import('./archive.ts')).archiveCommand,
  audit: async () => (await import('./audit.ts')).auditCommand,
  demo: async () => (await import('./demo/command.ts')).demoCommand,
  drain: async () => (await import('./drain.ts')).drainCommand,
  fixture: async () => (await import('./fixture/command.ts')).fixtureCommand,
  flush: async () => (await import('./flush.ts')).flushCommand,
  journal: async () => (await import('./journal.ts')).journalCommand,
  keys: async () => (await import('./keys.ts')).keysCommand,
  listen: async () => (await import('./listen.ts')).listenCommand,
  load: async () => (await import('./load.ts')).loadCommand,
  ndjson: async () => (await import('./ndjson.ts')).ndjsonCommand,
  pull: async () => (await import('./pull.ts')).pullCommand,
  receipt: async () => (await import('./receipt.ts')).receiptCommand,
  reconcile: async () => (await import('./reconcile/command.ts')).reconcileCommand,
  sandbox: async () => (await import('./sandbox/command.ts')).sandboxCommand,
  schema: async () => (await import('./schema.ts')).schemaCommand,
  sink: async () => (await import('./sink.ts')).sinkCommand,
  types: async () => (await import('./types.ts')).typesCommand,
  webhooks: async () => (await import('./webhooks/command.ts')).webhooksCommand,
};

const HELP = `
More commands: ${Object.keys(MORE).join(', ')}

Start here:
  millrace demo                 see it work, in a temporary folder
  millrace dev                  run everything on this machine, for development
  millrace init                 write a config and .env, and print the next commands

Exit codes: 0 done, 1 failed, 2 usage or config, 3 partly done and resumable, 4 a verification found a difference.
Results go to stdout, progress and logs to stderr.`;

/** Runs a command line and sets the exit code. Never rejects. */
export async function runProgram(io: Io, args: readonly string[]): Promise<void> {
  const isJson = wantsJson(args);
  try {
    await (await createProgram(io, wordOf(args), isJson)).parseAsync(args, { from: 'user' });
  } catch (thrown) {
    // The error of the command, when closing something failed too.
    const error: unknown = thrown instanceof SuppressedError ? thrown.suppressed : thrown;
    if (error instanceof CommanderError) {
      if (error.exitCode !== 0 && isJson) writeUsageFailure(io, error);
      return io.setExit(error.exitCode === 0 ? EXIT.done : EXIT.usage);
    }
    writeFailure(io, error, isJson);
    io.setExit(error instanceof MillraceError ? error.exit : EXIT.failed);
  }
}

/** The command that a command line names, also after `help`; empty without one. */
function wordOf(args: readonly string[]): string {
  const [first = '', second = ''] = args.filter((arg) => arg !== '--');
  return first === 'help' ? second : first;
}

/**
 * The program with its commands.
 * @param only the command to load; with an unknown name the program has only names, for the help and the version.
 *   Without it all commands are loaded.
 * @param isJson does not write errors of the command line as text
 */
export async function createProgram(io: Io, only?: string, isJson = false): Promise<Command> {
  const program = new Command('millrace')
    .description('Receive signed health-data webhooks, keep them durably, forward them to your sinks.')
    .version(ownPackage().version)
    .addHelpText('after', HELP)
    .hook('preAction', (_, command) => nameThisProcess(nameOf(command)));
  const commands = Object.entries(GROUPS).flatMap(([heading, group]) =>
    Object.entries(group).map(([name, [summary, load]]) => ({ heading, name, summary, load })),
  );
  const more = Object.entries(MORE).map(([name, load]) => ({ heading: 'Help:', name, summary: null, load }));
  const all = [...commands, ...more];
  // With a wrong name, all names are there for a suggestion.
  const isHelp = only === '' || only?.startsWith('-') === true;
  const isKnown = all.some(({ name }) => name === only);
  for (const { heading, name, summary, load } of all) {
    if (isKnown && name !== only) continue;
    program.commandsGroup(heading);
    if (only === undefined || isKnown) program.addCommand((await load())(io));
    else program.addCommand(new Command(name).summary(summary ?? ''), { hidden: isHelp && summary === null });
  }
  return configure(program.helpCommand(true), io, isJson);
}

/** `archive verify`: the name of a command with those above it, without the program's. */
function nameOf(command: Command): string {
  const { parent } = command;
  const isTop = parent === null || parent.parent === null;
  return isTop ? command.name() : `${nameOf(parent)} ${command.name()}`;
}

/** Keeps commander from ending the process. */
function configure(command: Command, io: Io, isJson: boolean): Command {
  command.exitOverride();
  command.configureOutput({
    writeOut: (text) => void io.stdout.write(wrapHelp(visibleLines(text), io.stdout.columns ?? 80)),
    writeErr: (text) =>
      void (isJson || io.stderr.write(wrapHelp(visibleLines(text), io.stderr.columns ?? 80))),
  });
  command.showHelpAfterError('(run it with --help for the options and examples)');
  for (const child of command.commands) configure(child, io, isJson);
  return command;
}
