import { MillraceError, messageOf } from '../core/errors.ts';
import type { Inlet, Sink, SinkContext, SinkModule } from '../core/sink.ts';
import { onBehalfOf, onOurOwn, type Guest } from '../lib/attribution.ts';
import { limitsOf } from './limits.ts';
import { OwnSink } from './own-sink.ts';

/** The file of a user's own module, and the sinks that were made by it. */
export class OwnModule implements Guest {
  readonly name: string;
  readonly #sinks = new Set<OwnSink>();

  /** @param file absolute path */
  constructor(file: string) {
    this.name = file;
  }

  /** What its top level has started belongs to no sink in particular: each of its sinks is blamed. */
  blame(error: unknown): boolean {
    for (const sink of this.#sinks) sink.blame(error);
    return this.#sinks.size > 0;
  }

  /** The same module with sinks that can harm themselves only. */
  guarded(module: SinkModule): SinkModule {
    const { describe, optionsSchema } = module;
    return {
      parseOptions: (options) => onBehalfOf(this, () => module.parseOptions(options)),
      createSink: (options, context) => this.#create(module, options, context),
      ...(describe === undefined
        ? {}
        : { describe: (options) => onBehalfOf(this, () => describe.call(module, options)) }),
      ...(optionsSchema === undefined ? {} : { optionsSchema: () => optionsSchema.call(module) }),
    };
  }

  #create(module: SinkModule, options: unknown, context: SinkContext): Sink {
    const own = new OwnSink(this.name, context, (made) => this.#sinks.delete(made));
    try {
      const sink = onBehalfOf(own, () => module.createSink(options, contextFor(context)));
      own.take(sink, limitsOf(sink));
    } catch (error) {
      if (error instanceof MillraceError) throw error;
      const detail = `sinks.${context.name}: ${this.name}: ${messageOf(error)}`;
      throw new MillraceError('sink_module_invalid', detail, { cause: error });
    }
    this.#sinks.add(own);
    return own;
  }
}

/** What happens in the journal at its call is not its doing; a promise of it that it leaves alone is. */
function contextFor(context: SinkContext): SinkContext {
  const { inlet } = context;
  if (inlet === undefined) return context;
  const take: Inlet['take'] = async (source, batch) => onOurOwn(() => inlet.take(source, batch));
  return { ...context, inlet: { fields: () => inlet.fields(), take } };
}
