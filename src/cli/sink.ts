import { Command } from 'commander';
import type { GivenUp } from '../core/operations.ts';
import { print, type Io } from './io.ts';
import { withOperations } from './operations.ts';
import { configOf, configOption } from './options.ts';

const HELP = `
Examples:
  millrace sink drop hubs        what waits for hubs, which the config does not name any more, becomes dead letters
  millrace dead-letters list --sink hubs

A reload or start that leaves out a sink for which events wait is refused. Put the sink back, let a new sink go on for
it (sinks.<new>.continues: hubs), or drop it. While a receiver runs that still has the sink, it is dropped by the next
reload that leaves it out. Exit codes: 0 done, 1 failed, 2 usage or config.`;

/** `millrace sink`: what a config that no longer names a sink leaves behind. */
export function sinkCommand(io: Io): Command {
  const command = new Command('sink').description('give up what waits for a sink that is gone: drop');
  command
    .command('drop')
    .description('make dead letters of what waits for a sink the config does not name any more')
    .argument('<name>', 'the sink')
    .addOption(configOption())
    .option('--json', 'print one JSON document')
    .addHelpText('after', HELP)
    .action(async (name: string, options: { config?: string; json?: boolean }) => {
      const loaded = configOf(options, io);
      const result = await withOperations(loaded, (operations) => operations.dropSink(name));
      print(io, options.json === true ? JSON.stringify(result) : render(result));
    });
  return command.addHelpText('after', HELP);
}

function render({ sink, dropped, waiting }: GivenUp): string {
  if (waiting === 0) return `${sink}: ${dropped} dead letters`;
  return `${sink} is still open: ${waiting} events become dead letters when a reload takes it out`;
}
