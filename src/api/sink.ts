/** What a sink of your own is written against (`type: ./my-sink.js`). */
export type { Clock } from '../core/clock.ts';
export {
  DELIVERED,
  type ClaimCheck,
  type Delivery,
  type Inlet,
  type SendResult,
  type Sink,
  type SinkContext,
  type SinkDescription,
  type SinkFolder,
  type SinkKeys,
  type SinkLimits,
  type SinkLog,
  type SinkModule,
  type SinkTrouble,
  type TakenBack,
} from '../core/sink.ts';
/** Options written as `4MiB` and `15s`, read as the built-in sinks read theirs. */
export { parseBytes, parseDuration } from '../lib/units.ts';
export type { Written as OptionsSchema } from '../lib/parse-options.ts';
