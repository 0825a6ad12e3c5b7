import { boolean, integer, json, text, type TableDefinition } from '../definition.ts';

const ZIP_CODE = text('zip_code', 'the area', { from: { parent: 'zip_code' }, required: true });

const AREA_CENTERS: TableDefinition = {
  name: 'area_centers',
  description: 'Patient service centers near the areas, one laboratory a row.',
  key: ['zip_code', 'lab'],
  columns: [
    ZIP_CODE,
    text('lab', 'lab identifier', { from: { of: 'key' }, required: true }),
    integer('within_radius', 'centers inside the radius', { from: 'patient_service_centers.within_radius' }),
    text('radius_miles', 'the radius, a text', { from: 'patient_service_centers.radius', unit: 'miles' }),
    json('capabilities', 'array of texts, such as stat', { from: 'patient_service_centers.capabilities' }),
  ],
};

const AREA_PHLEBOTOMY_PROVIDERS: TableDefinition = {
  name: 'area_phlebotomy_providers',
  description: 'Who draws blood at home in the areas, one provider a row.',
  key: ['zip_code', 'provider_index'],
  columns: [
    ZIP_CODE,
    integer('provider_index', 'position, from 0', { from: { of: 'position' }, required: true }),
    text('name', 'name of the provider'),
    json('tier', 'array of texts, such as appointment-ready'),
  ],
};

export const AREAS: TableDefinition = {
  name: 'areas',
  description: 'Phlebotomy and patient service center coverage, one zip code a row.',
  key: ['zip_code'],
  columns: [
    { ...ZIP_CODE, from: 'zip_code', description: 'five digits, or nine with a hyphen' },
    boolean('phlebotomy_is_served', 'blood is drawn at home here', { from: 'phlebotomy.is_served' }),
  ],
  nested: [
    { at: 'central_labs', each: 'map', table: AREA_CENTERS },
    { at: 'phlebotomy.providers', each: 'array', table: AREA_PHLEBOTOMY_PROVIDERS },
  ],
};
