import { MillraceError, messageOf } from '../core/errors.ts';
import type { Inlet, Sink, SinkContext, SinkModule } from '../core/sink.ts';
import { onBehalfOf, onOurOwn, type Guest } from '../lib/attribution.ts';
import { limitsOf } from './limits.ts';
import { OwnSink, StrayErrors } from './own-sink.ts';

/** A user's own module, and the sinks made by it. */
export class OwnModule implements Guest {
  readonly name: string;
  /** Of each of its sinks that is not closed. */
  readonly #strays = new Set<StrayErrors>();

  /** @param file absolute path */
  constructor(file: string) {
    this.name = file;
  }

  /** Blames every sink: an error of the module's top level belongs to no sink in particular. */
  blame(error: unknown): boolean {
    for (const strays of this.#strays) strays.blame(error);
    return this.#strays.size > 0;
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
    const strays = new StrayErrors(this.name, context);
    try {
      const sink = onBehalfOf(strays, () => module.createSink(options, contextFor(context)));
      const own = new OwnSink(sink, limitsOf(sink), strays, () => this.#strays.delete(strays));
      this.#strays.add(strays);
      return own;
    } catch (error) {
      if (error instanceof MillraceError) throw error;
      const detail = `sinks.${context.name}: ${this.name}: ${messageOf(error)}`;
      throw new MillraceError('sink_module_invalid', detail, { cause: error });
    }
  }
}

/** Runs the inlet as our own code: what the journal does is not the module's doing. */
function contextFor(context: SinkContext): SinkContext {
  const { inlet } = context;
  if (inlet === undefined) return context;
  const take: Inlet['take'] = async (source, batch) => onOurOwn(() => inlet.take(source, batch));
  return { ...context, inlet: { fields: () => inlet.fields(), take } };
}
