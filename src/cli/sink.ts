import type { Command } from 'commander';
import type { GivenUp } from '../core/operations.ts';
import { asOwner } from './as-owner.ts';
import { printResult, type Io } from './io.ts';
import { withOperations } from './operations.ts';
import { CONFIG, configOf } from './config-options.ts';
import { commandOf, type OptionsOf } from './options.ts';

const HELP = `
Examples:
  millrace sink drop hubs        events waiting for hubs, which is no longer in the config, become dead letters
  millrace dead-letters list --sink hubs

A start without a sink for which events are waiting is refused, and so is a reload while that sink is in trouble; one that is well
first gets what waits for it. Put the sink back, let a new sink take over its events (sinks.<new>.continues: hubs), or drop it. If
the running receiver still has the sink, the drop takes effect at the next reload without it. Exit codes: 0 done, 1 failed, 2 usage or config.`;

const OPTIONS = { ...CONFIG, '--json': 'print one JSON document' };

export function sinkCommand(io: Io): Command {
  const drop = commandOf('drop', OPTIONS, HELP)
    .description('turn events that wait for a removed sink into dead letters')
    .argument('<name>', 'the sink')
    .action(async (name: string, options: OptionsOf<typeof OPTIONS>) => {
      const loaded = asOwner(configOf(options, io));
      const result = await withOperations(loaded, (operations) => operations.dropSink(name));
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
