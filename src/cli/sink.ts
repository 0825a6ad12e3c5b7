import type { Command } from 'commander';
import type { GivenUp } from '../core/operations.ts';

import { printResult, type Io } from './io.ts';
import { withOperations } from './operations.ts';
import { CONFIG, runningConfigOf } from './config-options.ts';
import { commandOf, type OptionsOf } from './options.ts';

const HELP = `
Examples:
  millrace sink drop hubs        events waiting for hubs, which is no longer in the config, become dead letters
  millrace dead-letters list --sink hubs

A receiver does not start while events wait for a sink that is no longer in the config. Choose one of three: add the sink again,
give its events to a new sink (sinks.<new>.continues: hubs), or drop them. A reload without the sink first delivers its events; it
is refused while the sink is in trouble. If the running receiver still has the sink, the drop takes effect at that reload.

Exit codes: 0 done, 1 failed, 2 usage or config.`;

const OPTIONS = { ...CONFIG, '--json': 'print one JSON document' };

export function sinkCommand(io: Io): Command {
  const drop = commandOf('drop', OPTIONS, HELP)
    .description('turn events that wait for a removed sink into dead letters')
    .argument('<name>', 'the sink')
    .action(async (name: string, options: OptionsOf<typeof OPTIONS>) => {
      const result = await withOperations(runningConfigOf(options, io), (operations) =>
        operations.dropSink(name),
      );
      printResult(io, options, result, render(result));
    });
  return commandOf('sink', {}, HELP)
    .description('give up events that wait for a removed sink: drop')
    .addCommand(drop);
}

function render({ sink, dropped, waiting }: GivenUp): string {
  if (waiting === 0) return `${sink}: ${dropped} dead letters`;
  return `${sink} is still open: ${waiting} events become dead letters when a reload removes it`;
}
