import { table } from './definition.ts';

const ZIP_CODE = {
  name: 'zip_code',
  type: 'text',
  from: { parent: 'zip_code' },
  required: true,
  description: 'the area',
} as const;

const AREA_CENTERS = table({
  name: 'area_centers',
  description: 'Patient service centers near the areas, one laboratory a row.',
  key: ['zip_code', 'lab'],
  columns: [
    ZIP_CODE,
    { name: 'lab', type: 'text', from: { of: 'key' }, required: true, description: 'lab identifier' },
    {
      name: 'within_radius',
      type: 'integer',
      from: 'patient_service_centers.within_radius',
      description: 'centers inside the radius',
    },
    {
      name: 'radius_miles',
      type: 'text',
      from: 'patient_service_centers.radius',
      description: 'the radius, a text',
      unit: 'miles',
    },
    {
      name: 'capabilities',
      type: 'json',
      from: 'patient_service_centers.capabilities',
      description: 'array of texts, such as stat',
    },
  ],
});

const AREA_PHLEBOTOMY_PROVIDERS = table({
  name: 'area_phlebotomy_providers',
  description: 'Who draws blood at home in the areas, one provider a row.',
  key: ['zip_code', 'provider_index'],
  columns: [
    ZIP_CODE,
    {
      name: 'provider_index',
      type: 'integer',
      from: { of: 'position' },
      required: true,
      description: 'position, from 0',
    },
    { name: 'name', type: 'text', from: 'name', description: 'name of the provider' },
    {
      name: 'tier',
      type: 'json',
      from: 'tier',
      description: 'array of texts, such as appointment-ready',
    },
  ],
});

export const AREAS = table({
  name: 'areas',
  description: 'Phlebotomy and patient service center coverage, one zip code a row.',
  key: ['zip_code'],
  columns: [
    { ...ZIP_CODE, from: 'zip_code', description: 'five digits, or nine with a hyphen' },
    {
      name: 'phlebotomy_is_served',
      type: 'boolean',
      from: 'phlebotomy.is_served',
      description: 'blood is drawn at home here',
    },
  ],
  nested: [
    { at: 'central_labs', each: 'map', table: AREA_CENTERS },
    { at: 'phlebotomy.providers', each: 'array', table: AREA_PHLEBOTOMY_PROVIDERS },
  ],
});
